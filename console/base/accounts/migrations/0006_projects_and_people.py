import functools

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import console.base.common.clock
import console.base.common.ids


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_access_and_closing"),
    ]

    operations = [
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=functools.partial(console.base.common.ids.new_id, *("ivt",)),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("email", models.EmailField(max_length=254)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("admin", "Admin"),
                            ("developer", "Developer"),
                            ("billing", "Billing"),
                            ("viewer", "Viewer"),
                            ("member", "Member"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("accepted", "Accepted"),
                            ("revoked", "Revoked"),
                            ("expired", "Expired"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("nonce", models.CharField(max_length=32)),
                ("token_digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("sent_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("expires_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Project",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=functools.partial(console.base.common.ids.new_id, *("prj",)),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("labels", models.JSONField(default=dict)),
                ("is_default", models.BooleanField(default=False)),
                ("generation", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="RoleBinding",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=functools.partial(console.base.common.ids.new_id, *("rb",)),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("admin", "Admin"),
                            ("developer", "Developer"),
                            ("billing", "Billing"),
                            ("viewer", "Viewer"),
                            ("member", "Member"),
                        ],
                        max_length=16,
                    ),
                ),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
            ],
        ),
        migrations.CreateModel(
            name="ServiceAccount",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=functools.partial(console.base.common.ids.new_id, *("sa",)),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("description", models.CharField(blank=True, max_length=500)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("admin", "Admin"),
                            ("developer", "Developer"),
                            ("billing", "Billing"),
                            ("viewer", "Viewer"),
                            ("member", "Member"),
                        ],
                        max_length=16,
                    ),
                ),
                ("disabled", models.BooleanField(default=False)),
                ("generation", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.AddField(
            model_name="membership",
            name="last_seen_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="role",
            field=models.CharField(
                blank=True,
                choices=[
                    ("owner", "Owner"),
                    ("admin", "Admin"),
                    ("developer", "Developer"),
                    ("billing", "Billing"),
                    ("viewer", "Viewer"),
                    ("member", "Member"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="membership",
            name="role",
            field=models.CharField(
                choices=[
                    ("owner", "Owner"),
                    ("admin", "Admin"),
                    ("developer", "Developer"),
                    ("billing", "Billing"),
                    ("viewer", "Viewer"),
                    ("member", "Member"),
                ],
                max_length=16,
            ),
        ),
        migrations.AddIndex(
            model_name="membership",
            index=models.Index(fields=["organization", "created_at", "id"], name="members_oldest"),
        ),
        migrations.AddField(
            model_name="invitation",
            name="invited_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="invitation",
            name="organization",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="invitations",
                to="accounts.organization",
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="organization",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="projects",
                to="accounts.organization",
            ),
        ),
        migrations.AddField(
            model_name="rolebinding",
            name="membership",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="role_bindings",
                to="accounts.membership",
            ),
        ),
        migrations.AddField(
            model_name="rolebinding",
            name="organization",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="role_bindings",
                to="accounts.organization",
            ),
        ),
        migrations.AddField(
            model_name="rolebinding",
            name="project",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="role_bindings",
                to="accounts.project",
            ),
        ),
        migrations.AddField(
            model_name="serviceaccount",
            name="organization",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="service_accounts",
                to="accounts.organization",
            ),
        ),
        migrations.AddField(
            model_name="rolebinding",
            name="service_account",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="role_bindings",
                to="accounts.serviceaccount",
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="service_account",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="api_keys",
                to="accounts.serviceaccount",
            ),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=models.Q(("service_account", None), ("role", ""), _connector="XOR"),
                name="role_or_service_account",
            ),
        ),
        migrations.AddIndex(
            model_name="invitation",
            index=models.Index(
                fields=["organization", "-created_at", "-id"], name="invitations_newest"
            ),
        ),
        migrations.AddConstraint(
            model_name="invitation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "pending")),
                fields=("organization", "email"),
                name="one_pending_invitation",
            ),
        ),
        migrations.AddConstraint(
            model_name="invitation",
            constraint=models.CheckConstraint(
                condition=models.Q(("email", django.db.models.functions.text.Lower("email"))),
                name="invited_in_lower_case",
            ),
        ),
        migrations.AddIndex(
            model_name="project",
            index=models.Index(
                fields=["organization", "-created_at", "-id"], name="projects_newest"
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.UniqueConstraint(
                condition=models.Q(("deleted_at", None)),
                fields=("organization", "name"),
                name="one_project_a_name",
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_default", True)),
                fields=("organization",),
                name="one_default_project",
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(("is_default", False), ("deleted_at", None), _connector="OR"),
                name="default_project_stays",
            ),
        ),
        migrations.AddIndex(
            model_name="serviceaccount",
            index=models.Index(
                fields=["organization", "-created_at", "-id"], name="service_accounts_newest"
            ),
        ),
        migrations.AddConstraint(
            model_name="serviceaccount",
            constraint=models.UniqueConstraint(
                condition=models.Q(("deleted_at", None)),
                fields=("organization", "name"),
                name="one_service_account_a_name",
            ),
        ),
        migrations.AddIndex(
            model_name="rolebinding",
            index=models.Index(
                fields=["organization", "-created_at", "-id"], name="role_bindings_newest"
            ),
        ),
        migrations.AddConstraint(
            model_name="rolebinding",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("membership", None), ("service_account", None), _connector="XOR"
                ),
                name="one_principal",
            ),
        ),
        migrations.AddConstraint(
            model_name="rolebinding",
            constraint=models.UniqueConstraint(
                fields=("project", "membership", "role"), name="one_binding_a_member"
            ),
        ),
        migrations.AddConstraint(
            model_name="rolebinding",
            constraint=models.UniqueConstraint(
                fields=("project", "service_account", "role"), name="one_binding_a_service_account"
            ),
        ),
    ]
