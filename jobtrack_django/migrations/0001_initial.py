"""The tables of jobtrack, and triggers that keep audit entries as they were written."""

import django.db.models.deletion
import jobtrack_django.append_only
import jobtrack_django.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        migrations.CreateModel(
            name='TableText',
            fields=[
                ('digest', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('table_id', jobtrack_django.fields.IdentityField(max_length=100)),
                ('revision', models.PositiveIntegerField(default=0)),
                ('text', models.TextField()),
                ('first_seen_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='AccountGate',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('provider', jobtrack_django.fields.IdentityField(max_length=100)),
                ('account', jobtrack_django.fields.IdentityField(max_length=100)),
                ('reason', models.CharField(blank=True, max_length=20)),
                ('held_until', models.DateTimeField(blank=True, null=True)),
                ('streak', models.PositiveIntegerField(default=0)),
                ('probe', jobtrack_django.fields.IdentityField(blank=True, max_length=200)),
                ('version', models.PositiveBigIntegerField(default=0)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('provider', 'account'), name='jobtrack_one_gate')],
            },
        ),
        migrations.CreateModel(
            name='Operation',
            fields=[
                ('id', jobtrack_django.fields.IdentityField(max_length=200, primary_key=True, serialize=False)),
                ('provider', jobtrack_django.fields.IdentityField(max_length=100)),
                ('account', jobtrack_django.fields.IdentityField(default='default', max_length=100)),
                ('job_id', jobtrack_django.fields.IdentityField(blank=True, max_length=500)),
                ('state', models.CharField(max_length=20)),
                ('cause', models.CharField(blank=True, max_length=40)),
                ('reference', jobtrack_django.fields.IdentityField(blank=True, max_length=200)),
                ('object_id', jobtrack_django.fields.IdentityField(blank=True, editable=False, max_length=200)),
                ('params', models.JSONField(blank=True, default=dict)),
                ('status_url', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
                ('accepted_at', models.DateTimeField()),
                ('deadline', models.DateTimeField()),
                ('needed_by', models.DateTimeField(blank=True, null=True)),
                ('needed_by_told', models.BooleanField(default=False)),
                ('limit_status_requests', models.PositiveIntegerField()),
                ('limit_transport_failures', models.PositiveIntegerField()),
                ('limit_rate_limited', models.PositiveIntegerField()),
                ('limit_extensions', models.PositiveIntegerField(default=0)),
                ('spent_status_requests', models.PositiveIntegerField(default=0)),
                ('spent_transport_failures', models.PositiveIntegerField(default=0)),
                ('spent_rate_limited', models.PositiveIntegerField(default=0)),
                ('spent_extensions', models.PositiveIntegerField(default=0)),
                ('last_look', models.BooleanField(default=False)),
                ('look_until', models.DateTimeField(blank=True, null=True)),
                ('resumed_at', models.DateTimeField(blank=True, null=True)),
                ('fence', models.PositiveBigIntegerField(default=0)),
                ('lease_owner', models.CharField(blank=True, max_length=64)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('lease_granted', models.BooleanField(default=False)),
                ('wake_at', models.DateTimeField(blank=True, null=True)),
                ('wake_until', models.DateTimeField(blank=True, null=True)),
                ('not_before', models.DateTimeField(blank=True, null=True)),
                ('delay_source', models.CharField(blank=True, max_length=40)),
                ('provider_state', models.CharField(blank=True, max_length=500)),
                ('provider_state_since', models.DateTimeField(blank=True, null=True)),
                ('observed_at', models.DateTimeField(blank=True, null=True)),
                ('last_http', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('progress', models.CharField(blank=True, max_length=500)),
                ('error', models.TextField(blank=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('kept', models.JSONField(blank=True, default=dict)),
                ('escalate_ends', models.BooleanField(default=True)),
                ('missing_since', models.DateTimeField(blank=True, null=True)),
                ('revision', models.PositiveIntegerField(default=0)),
                ('table_digest', models.CharField(blank=True, max_length=64)),
                ('audit_seq', models.PositiveIntegerField(default=0)),
                ('audit_head', models.CharField(blank=True, max_length=64)),
                ('on_success', models.CharField(blank=True, max_length=255)),
                ('on_failure', models.CharField(blank=True, max_length=255)),
                ('on_end', models.CharField(blank=True, max_length=255)),
                ('predecessor', jobtrack_django.fields.IdentityField(blank=True, max_length=200)),
                ('content_type', models.ForeignKey(blank=True, db_constraint=False, db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='contenttypes.contenttype')),
            ],
            options={
                'verbose_name': 'operation',
                'verbose_name_plural': 'operations',
                'ordering': ['-created_at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='Escalation',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('reason', models.CharField(max_length=60)),
                ('detail', models.TextField(blank=True)),
                ('blocking', models.BooleanField()),
                ('open_blocking', models.BooleanField(editable=False, null=True)),
                ('open_advisory', models.BooleanField(editable=False, null=True)),
                ('version', models.PositiveIntegerField(default=1)),
                ('opened_at', models.DateTimeField()),
                ('option', models.CharField(blank=True, max_length=40)),
                ('actor', models.CharField(blank=True, max_length=255)),
                ('actor_reason', models.TextField(blank=True)),
                ('seen_version', models.PositiveIntegerField(blank=True, null=True)),
                ('decided_at', models.DateTimeField(blank=True, null=True)),
                ('operation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='escalations', to='jobtrack.operation')),
            ],
            options={
                'verbose_name': 'escalation',
                'verbose_name_plural': 'escalations (needs decision)',
                'permissions': [('extend_operation', 'Can extend an operation'), ('look_again', 'Can ask a provider once more'), ('repair_access', 'Can state that access was repaired'), ('retry_delivery', 'Can run a follow-up again'), ('close_escalation', 'Can close an escalation')],
                'ordering': ['-opened_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', jobtrack_django.fields.IdentityField(max_length=241, primary_key=True, serialize=False)),
                ('event', models.CharField(max_length=40)),
                ('handler', models.CharField(max_length=255)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('due_at', models.DateTimeField(blank=True, null=True)),
                ('wake_until', models.DateTimeField(blank=True, null=True)),
                ('lease_owner', models.CharField(blank=True, max_length=64)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('delivered_at', models.DateTimeField(blank=True, null=True)),
                ('last_error', models.TextField(blank=True)),
                ('operation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='jobtrack.operation')),
            ],
            options={
                'verbose_name_plural': 'deliveries',
                'ordering': ['operation_id', 'event'],
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('seq', models.PositiveIntegerField()),
                ('prev', models.CharField(blank=True, max_length=64)),
                ('hash', models.CharField(max_length=64)),
                ('body', models.TextField()),
                ('at', models.DateTimeField()),
                ('operation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='audit', to='jobtrack.operation')),
            ],
            options={
                'verbose_name': 'audit entry',
                'verbose_name_plural': 'audit entries',
                'ordering': ['operation_id', 'seq'],
            },
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['wake_at'], name='jobtrack_op_wake'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['state', 'created_at'], name='jobtrack_op_state'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['provider', 'account', 'created_at'], name='jobtrack_op_provider'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['job_id'], name='jobtrack_op_job'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['reference'], name='jobtrack_op_reference'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['content_type', 'object_id'], name='jobtrack_op_subject'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['created_at'], name='jobtrack_op_created'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['ready', 'submitting', 'unconfirmed', 'running', 'escalated', 'succeeded', 'failed', 'cancelled', 'expired', 'abandoned'])), name='jobtrack_op_state_known'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state__in', ['succeeded', 'failed', 'cancelled', 'expired', 'abandoned']), _negated=True), models.Q(('lease_until__isnull', True), ('wake_at__isnull', True)), _connector='OR'), name='jobtrack_op_ended_rests'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('fence__gte', 0)), name='jobtrack_op_fence'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('spent_status_requests__lte', models.F('limit_status_requests'))), name='jobtrack_op_requests'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('spent_transport_failures__lte', models.F('limit_transport_failures'))), name='jobtrack_op_failures'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('spent_rate_limited__lte', models.F('limit_rate_limited'))), name='jobtrack_op_rate_limited'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('spent_extensions__lte', models.F('limit_extensions'))), name='jobtrack_op_extensions'),
        ),
        migrations.AddIndex(
            model_name='escalation',
            index=models.Index(fields=['decided_at', 'opened_at'], name='jobtrack_escalation_open'),
        ),
        migrations.AddConstraint(
            model_name='escalation',
            constraint=models.UniqueConstraint(fields=('operation', 'open_blocking'), name='jobtrack_one_blocking'),
        ),
        migrations.AddConstraint(
            model_name='escalation',
            constraint=models.UniqueConstraint(fields=('operation', 'reason', 'open_advisory'), name='jobtrack_one_advisory'),
        ),
        migrations.AddConstraint(
            model_name='escalation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('blocking', True), ('decided_at__isnull', True), ('open_advisory__isnull', True), ('open_blocking', True), ('open_blocking__isnull', False)), models.Q(('blocking', False), ('decided_at__isnull', True), ('open_advisory', True), ('open_advisory__isnull', False), ('open_blocking__isnull', True)), models.Q(('decided_at__isnull', False), ('open_advisory__isnull', True), ('open_blocking__isnull', True)), _connector='OR'), name='jobtrack_open_or_decided'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['due_at'], name='jobtrack_delivery_due'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.UniqueConstraint(fields=('operation', 'event'), name='jobtrack_one_delivery'),
        ),
        migrations.AddConstraint(
            model_name='auditentry',
            constraint=models.UniqueConstraint(fields=('operation', 'seq'), name='jobtrack_audit_seq'),
        ),
        migrations.RunPython(jobtrack_django.append_only.install, jobtrack_django.append_only.remove, atomic=False),
    ]
