"""The desk: what lists are ordered by, notices, bulk decisions, figures, and what remains of pruned operations."""

import django.db.models.deletion
import jobtrack.core.escalation
import jobtrack_django.fields
from django.db import migrations, models

from jobtrack_django import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('contenttypes', '0002_remove_content_type_name'),
        ('jobtrack', '0002_submissions'),
    ]

    operations = [
        migrations.CreateModel(
            name='DailyFigure',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('day', models.DateField()),
                ('provider', jobtrack_django.fields.IdentityField(blank=True, max_length=100)),
                ('measure', models.CharField(max_length=80)),
                ('count', models.BigIntegerField(default=0)),
                ('total', models.FloatField(blank=True, null=True)),
                ('measured_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Dashboard',
            fields=[
            ],
            options={
                'verbose_name': 'dashboard',
                'verbose_name_plural': 'dashboard',
                'proxy': True,
                'default_permissions': (),
                'indexes': [],
                'constraints': [],
            },
            bases=('jobtrack.dailyfigure',),
        ),
        migrations.CreateModel(
            name='DecisionBatch',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('option', models.CharField(max_length=40)),
                ('actor', models.CharField(max_length=255)),
                ('reason', models.TextField()),
                ('created_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'verbose_name': 'bulk decision',
                'verbose_name_plural': 'bulk decisions',
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='DecisionItem',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('version', models.PositiveIntegerField()),
                ('outcome', models.CharField(default='pending', max_length=20)),
                ('detail', models.TextField(blank=True)),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='Heartbeat',
            fields=[
                ('name', jobtrack_django.fields.IdentityField(max_length=200, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=20)),
                ('started_at', models.DateTimeField()),
                ('seen_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('notifier', jobtrack_django.fields.IdentityField(max_length=100)),
                ('turn', models.PositiveSmallIntegerField()),
                ('due_at', models.DateTimeField(blank=True, null=True)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('lease_owner', models.CharField(blank=True, max_length=64)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('outcome', models.CharField(blank=True, max_length=20)),
                ('sent_at', models.DateTimeField(blank=True, null=True)),
                ('message_id', models.CharField(blank=True, max_length=64)),
                ('last_error', models.TextField(blank=True)),
            ],
            options={
                'verbose_name': 'notice',
                'verbose_name_plural': 'notices',
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='PrunedOperation',
            fields=[
                ('operation_id', jobtrack_django.fields.IdentityField(max_length=200, primary_key=True, serialize=False)),
                ('provider', jobtrack_django.fields.IdentityField(max_length=100)),
                ('account', jobtrack_django.fields.IdentityField(max_length=100)),
                ('state', models.CharField(max_length=20)),
                ('ended_at', models.DateTimeField(null=True)),
                ('audit_seq', models.PositiveIntegerField()),
                ('audit_head', models.CharField(max_length=64)),
                ('proof', models.CharField(max_length=255)),
                ('pruned_at', models.DateTimeField()),
            ],
        ),
        migrations.AlterModelOptions(
            name='escalation',
            options={'ordering': ['-opened_at', '-id'], 'permissions': [('extend_operation', 'Can extend an operation'), ('look_again', 'Can ask a provider once more'), ('repair_access', 'Can state that access was repaired'), ('retry_delivery', 'Can run a follow-up again'), ('close_escalation', 'Can close an escalation'), ('look_up_submission', 'Can ask a provider whether it has a job'), ('attach_job', 'Can name the job of an operation'), ('resubmit_operation', 'Can submit a job once more'), ('cancel_operation', 'Can ask a provider to cancel a job'), ('fetch_result', 'Can fetch a result again'), ('decide_in_bulk', 'Can decide many questions at once'), ('download_bundle', 'Can download a support bundle')], 'verbose_name': 'escalation', 'verbose_name_plural': 'needs decision'},
        ),
        migrations.AddField(
            model_name='escalation',
            name='account',
            field=jobtrack_django.fields.IdentityField(blank=True, db_default='', max_length=100),
        ),
        migrations.AddField(
            model_name='escalation',
            name='proposed_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='escalation',
            name='proposed_person',
            field=jobtrack_django.fields.IdentityField(blank=True, db_default='', max_length=200),
        ),
        migrations.AddField(
            model_name='escalation',
            name='proposed_by',
            field=models.CharField(blank=True, max_length=255, null=True),
        ),
        migrations.AddField(
            model_name='escalation',
            name='proposed_job',
            field=jobtrack_django.fields.IdentityField(blank=True, db_default='', max_length=500),
        ),
        migrations.AddField(
            model_name='escalation',
            name='proposed_option',
            field=models.CharField(blank=True, max_length=40, null=True),
        ),
        migrations.AddField(
            model_name='escalation',
            name='proposed_why',
            field=models.TextField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='escalation',
            name='provider',
            field=jobtrack_django.fields.IdentityField(blank=True, db_default='', max_length=100),
        ),
        migrations.AddField(
            model_name='escalation',
            name='risk',
            field=models.PositiveSmallIntegerField(db_default=models.Value(2), default=jobtrack.core.escalation.Risk['MEDIUM']),
        ),
        migrations.AddField(
            model_name='operation',
            name='ended_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='operation',
            name='seen_within',
            field=models.DurationField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name='escalation',
            index=models.Index(fields=['decided_at', 'risk', 'opened_at'], name='jobtrack_escalation_risk'),
        ),
        migrations.AddIndex(
            model_name='escalation',
            index=models.Index(fields=['provider', 'decided_at', 'opened_at'], name='jobtrack_escalation_prov'),
        ),
        migrations.AddIndex(
            model_name='escalation',
            index=models.Index(fields=['provider', 'decided_at', 'risk', 'opened_at'], name='jobtrack_escalation_urgent'),
        ),
        migrations.AddIndex(
            model_name='escalation',
            index=models.Index(fields=['reason', 'decided_at', 'opened_at'], name='jobtrack_escalation_reason'),
        ),
        migrations.AlterModelOptions(
            name='webhookreceipt',
            options={'verbose_name': 'webhook receipt', 'verbose_name_plural': 'webhook receipts'},
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['provider', 'created_at'], name='jobtrack_op_by_provider'),
        ),
        migrations.RemoveIndex(
            model_name='operation',
            name='jobtrack_op_provider',
        ),
        migrations.AddIndex(
            model_name='escalation',
            index=models.Index(fields=['opened_at'], name='jobtrack_escalation_opened'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['ended_at'], name='jobtrack_op_ended'),
        ),
        migrations.AddConstraint(
            model_name='dailyfigure',
            constraint=models.UniqueConstraint(fields=('day', 'provider', 'measure'), name='jobtrack_one_figure'),
        ),
        migrations.AddField(
            model_name='decisionbatch',
            name='retry_of',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='retries', to='jobtrack.decisionbatch'),
        ),
        migrations.AddField(
            model_name='decisionitem',
            name='batch',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='jobtrack.decisionbatch'),
        ),
        migrations.AddField(
            model_name='decisionitem',
            name='escalation',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='batch_items', to='jobtrack.escalation'),
        ),
        migrations.AddIndex(
            model_name='heartbeat',
            index=models.Index(fields=['seen_at'], name='jobtrack_heartbeat_seen'),
        ),
        migrations.AddField(
            model_name='notice',
            name='escalation',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='notices', to='jobtrack.escalation'),
        ),
        migrations.AddConstraint(
            model_name='decisionitem',
            constraint=models.UniqueConstraint(fields=('batch', 'escalation'), name='jobtrack_one_item'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(fields=['due_at'], name='jobtrack_notice_due'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(fields=['notifier', 'sent_at'], name='jobtrack_notice_sent'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(fields=['outcome', 'id'], name='jobtrack_notice_outcome'),
        ),
        migrations.AddConstraint(
            model_name='notice',
            constraint=models.UniqueConstraint(fields=('escalation', 'notifier', 'turn'), name='jobtrack_one_notice'),
        ),
        migrations.RunPython(append_only.allow_proven, append_only.allow_none, elidable=False),
    ]
