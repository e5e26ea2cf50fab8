"""Submissions, results and notices: what an operation keeps of them, and their own rows."""

import django.db.models.deletion
import jobtrack_django.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobtrack', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='FollowUpReceipt',
            fields=[
                ('key', jobtrack_django.fields.IdentityField(max_length=241, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='JobResult',
            fields=[
                ('operation', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='result', serialize=False, to='jobtrack.operation')),
                ('state', models.CharField(max_length=20)),
                ('files', models.JSONField(blank=True, default=list)),
                ('reads', models.PositiveIntegerField(default=0)),
                ('detail', models.TextField(blank=True)),
                ('link', models.TextField(blank=True)),
                ('fetched_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'verbose_name': 'result',
                'verbose_name_plural': 'results',
            },
        ),
        migrations.CreateModel(
            name='WebhookReceipt',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('provider', jobtrack_django.fields.IdentityField(max_length=100)),
                ('account', jobtrack_django.fields.IdentityField(max_length=100)),
                ('notice_id', jobtrack_django.fields.IdentityField(max_length=200)),
                ('job_id', jobtrack_django.fields.IdentityField(blank=True, max_length=500)),
                ('operation_id', jobtrack_django.fields.IdentityField(blank=True, max_length=200)),
                ('received_at', models.DateTimeField()),
            ],
        ),
        migrations.AlterModelOptions(
            name='escalation',
            options={'ordering': ['-opened_at', '-id'], 'permissions': [('extend_operation', 'Can extend an operation'), ('look_again', 'Can ask a provider once more'), ('repair_access', 'Can state that access was repaired'), ('retry_delivery', 'Can run a follow-up again'), ('close_escalation', 'Can close an escalation'), ('look_up_submission', 'Can ask a provider whether it has a job'), ('attach_job', 'Can name the job of an operation'), ('resubmit_operation', 'Can submit a job once more'), ('cancel_operation', 'Can ask a provider to cancel a job'), ('fetch_result', 'Can fetch a result again')], 'verbose_name': 'escalation', 'verbose_name_plural': 'escalations (needs decision)'},
        ),
        migrations.AddField(
            model_name='escalation',
            name='job_id',
            field=jobtrack_django.fields.IdentityField(blank=True, max_length=500),
        ),
        migrations.AddField(
            model_name='operation',
            name='acceptance_seen',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='operation',
            name='cancel_state',
            field=models.CharField(blank=True, max_length=20),
        ),
        migrations.AddField(
            model_name='operation',
            name='doubt',
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name='operation',
            name='doubt_http',
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='operation',
            name='evidence',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name='operation',
            name='fingerprint',
            field=models.CharField(blank=True, max_length=100),
        ),
        migrations.AddField(
            model_name='operation',
            name='permits',
            field=models.TextField(blank=True, default=''),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='operation',
            name='first_sent_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='operation',
            name='follow_for',
            field=models.DurationField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='operation',
            name='hint_floor',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='operation',
            name='hinted',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='operation',
            name='idempotency_key',
            field=jobtrack_django.fields.IdentityField(blank=True, max_length=200),
        ),
        migrations.AddField(
            model_name='operation',
            name='last_sent_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='operation',
            name='limit_lookups',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='operation',
            name='limit_submissions',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='operation',
            name='noticed_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='operation',
            name='recover_until',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='operation',
            name='sealed',
            field=models.TextField(blank=True, editable=False),
        ),
        migrations.AddField(
            model_name='operation',
            name='spent_lookups',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='operation',
            name='spent_submissions',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='operation',
            name='submit_by',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name='operation',
            name='accepted_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('spent_submissions__lte', models.F('limit_submissions'))), name='jobtrack_op_submissions'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('spent_lookups__lte', models.F('limit_lookups'))), name='jobtrack_op_lookups'),
        ),
        migrations.AddIndex(
            model_name='webhookreceipt',
            index=models.Index(fields=['job_id'], name='jobtrack_receipt_job'),
        ),
        migrations.AddIndex(
            model_name='webhookreceipt',
            index=models.Index(fields=['operation_id'], name='jobtrack_receipt_operation'),
        ),
        migrations.AddIndex(
            model_name='webhookreceipt',
            index=models.Index(fields=['received_at'], name='jobtrack_receipt_received'),
        ),
        migrations.AddConstraint(
            model_name='webhookreceipt',
            constraint=models.UniqueConstraint(fields=('provider', 'account', 'notice_id'), name='jobtrack_one_receipt'),
        ),
    ]
