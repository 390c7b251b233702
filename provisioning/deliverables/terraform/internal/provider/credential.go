package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

const (
	credentialNameMax = 100
	passwordMin       = 16
	passwordMax       = 128
	overlapDefault    = 24 * 3600
	overlapMax        = 30 * 24 * 3600
)

var (
	credentialRoles = []string{"full", "producer", "consumer", "none"}
	mechanisms      = []string{"SCRAM-SHA-256", "SCRAM-SHA-512"}
)

// credentialFacts are the part of a credential that the resource and the data sources share.
type credentialFacts struct {
	ID        types.String `tfsdk:"id"`
	Name      types.String `tfsdk:"name"`
	Role      types.String `tfsdk:"role"`
	Mechanism types.String `tfsdk:"mechanism"`
	Username  types.String `tfsdk:"username"`
	Principal types.String `tfsdk:"principal"`
	CreatedAt types.String `tfsdk:"created_at"`
}

type credentialModel struct {
	credentialFacts
	ClusterID         types.String `tfsdk:"cluster_id"`
	PasswordWO        types.String `tfsdk:"password_wo"`
	PasswordWOVersion types.Int64  `tfsdk:"password_wo_version"`
	RotationOverlapS  types.Int64  `tfsdk:"rotation_overlap_s"`
}

func credentialResource() resource.Resource {
	return &managed[credentialModel]{
		frame:    frame{name: "credential"},
		schema:   credentialSchema(),
		create:   createCredential,
		read:     readCredential,
		update:   updateCredential,
		remove:   removeCredential,
		identify: identifyCredential,

		planChange: planRotation,
	}
}

func credentialSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A credential of Kafka clients. Its password comes from you, by a " +
			"write-only attribute: it is in no state and in no plan. Give the same ephemeral value to " +
			"the secret store that your clients read.",
		Attributes: map[string]schema.Attribute{
			"id":         computedText("Id, such as `cred_5xw4mzn6yt2ba3k2jq7v`."),
			"cluster_id": inACluster(),
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Name, unique in the cluster.",
				Validators: []validator.String{
					stringvalidator.LengthBetween(1, credentialNameMax),
				},
			},
			"role": fixedText("Which rights it begins with: "+quoted(credentialRoles)+
				". `none` has those that `freshet_acl` gives.",
				stringvalidator.OneOf(credentialRoles...)),
			"mechanism": defaultText("How clients authenticate; PLAIN works with it too.",
				"SCRAM-SHA-512", mechanisms...),
			"password_wo": schema.StringAttribute{
				Optional:  true,
				Sensitive: true,
				WriteOnly: true,
				MarkdownDescription: "Password: 16 to 128 visible ASCII characters. Terraform " +
					"remembers nothing of it. Without it nobody knows the password.",
				Validators: []validator.String{
					stringvalidator.LengthBetween(passwordMin, passwordMax),
				},
			},
			"password_wo_version": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "Count it up when `password_wo` is another one: Terraform cannot " +
					"see that by itself. It rotates the credential: another with the same name and " +
					"rights takes its place, under a user name of its own, and the one before works " +
					"for `rotation_overlap_s` on.",
				Validators: []validator.Int64{
					int64validator.AlsoRequires(path.MatchRoot("password_wo")),
				},
			},
			"rotation_overlap_s": schema.Int64Attribute{
				Optional: true,
				Computed: true,
				Default:  int64default.StaticInt64(overlapDefault),
				MarkdownDescription: "Seconds for which the credential before works on after a " +
					"rotation. Default: `86400`, a day.",
				Validators: []validator.Int64{int64validator.Between(0, overlapMax)},
			},
			"username":   computedText("User name for clients."),
			"principal":  computedText("Name in `freshet_acl`: `User:` and the user name."),
			"created_at": computedText("When it was made, RFC 3339."),
		},
	}
}

func createCredential(
	ctx context.Context, s *session, plan *credentialModel, config credentialModel,
) (bool, error) {
	cluster := plan.ClusterID.ValueString()
	made, err := s.api.CreateCredential(ctx, cluster, api.NewCredential{
		Name:      plan.Name.ValueString(),
		Role:      plan.Role.ValueString(),
		Mechanism: plan.Mechanism.ValueString(),
		Password:  optionalText(config.PasswordWO),
	})
	if err != nil {
		return false, err
	}
	s.credentials.Put(cluster, made.Credential())
	plan.show(made.Credential())
	return true, nil
}

func readCredential(ctx context.Context, s *session, state *credentialModel) error {
	credential, err := s.currentCredential(ctx, state)
	if err != nil {
		return err
	}
	if state.RotationOverlapS.IsNull() {
		state.RotationOverlapS = types.Int64Value(overlapDefault)
	}
	state.show(credential)
	return nil
}

// currentCredential finds the credential of a state. Where somebody else rotated it, it finds the
// one in its place by the name, which is unique, also after the rotated one has ended.
func (s *session) currentCredential(
	ctx context.Context, state *credentialModel,
) (api.Credential, error) {
	cluster, id := state.ClusterID.ValueString(), state.ID.ValueString()
	credential, exists, err := s.credentials.Find(ctx, cluster, id)
	if err != nil {
		return credential, err
	}
	if exists && credential.ReplacedBy == nil {
		return credential, nil
	}
	name := state.Name.ValueString()
	if exists {
		name = credential.Name
	}
	if name == "" {
		return credential, absent("credential", id)
	}
	return s.credentialNamed(ctx, cluster, name)
}

func updateCredential(
	ctx context.Context, s *session, plan *credentialModel, state, config credentialModel,
) error {
	cluster, id := state.ClusterID.ValueString(), state.ID.ValueString()
	if !plan.Name.Equal(state.Name) {
		credential, err := s.api.RenameCredential(ctx, cluster, id, plan.Name.ValueString())
		if err != nil {
			return err
		}
		s.credentials.Put(cluster, credential)
		plan.show(credential)
	}
	if plan.PasswordWOVersion.Equal(state.PasswordWOVersion) {
		return nil
	}
	made, err := s.api.RotateCredential(ctx, cluster, id, api.Rotation{
		OverlapS: plan.RotationOverlapS.ValueInt64(), Password: optionalText(config.PasswordWO),
	})
	if err != nil {
		return err
	}
	s.credentials.Forget(cluster) // the credential before it has changed too
	plan.show(made.Credential())
	return nil
}

// planRotation marks what a rotation changes as known later: it makes another user.
func planRotation(state credentialModel, plan *credentialModel, _ *diag.Diagnostics) {
	if plan.PasswordWOVersion.Equal(state.PasswordWOVersion) {
		return
	}
	plan.ID = types.StringUnknown()
	plan.Username = types.StringUnknown()
	plan.Principal = types.StringUnknown()
	plan.CreatedAt = types.StringUnknown()
}

func (m *credentialFacts) show(credential api.Credential) {
	m.ID = types.StringValue(credential.ID)
	m.Name = types.StringValue(credential.Name)
	m.Role = types.StringValue(credential.Role)
	m.Mechanism = types.StringValue(credential.Mechanism)
	m.Username = types.StringValue(credential.Username)
	m.Principal = types.StringValue(credential.Principal)
	m.CreatedAt = types.StringValue(credential.CreatedAt)
}

func removeCredential(ctx context.Context, s *session, state credentialModel) error {
	cluster, id := state.ClusterID.ValueString(), state.ID.ValueString()
	ids := []string{id}
	all, err := s.credentials.All(ctx, cluster)
	if err != nil && !api.IsNotFound(err) {
		return err
	}
	for _, credential := range all {
		if credential.ReplacedBy != nil && *credential.ReplacedBy == id {
			ids = append(ids, credential.ID) // a rotation left it for a while
		}
	}
	for _, id := range ids {
		err := s.credentials.removed(cluster, id, s.api.DeleteCredential(ctx, cluster, id))
		if err != nil {
			return err
		}
	}
	return nil
}

// identifyCredential reads the id of an import: cluster/name or cluster/id.
func identifyCredential(ctx context.Context, s *session, id string) (map[string]string, error) {
	cluster, name, err := s.inCluster(ctx, id)
	if err != nil {
		return nil, err
	}
	credential, err := s.credentialNamed(ctx, cluster, name)
	return map[string]string{"cluster_id": cluster, "id": credential.ID}, err
}

// credentialNamed finds a credential that was not rotated by its id or its name.
func (s *session) credentialNamed(
	ctx context.Context, cluster, idOrName string,
) (api.Credential, error) {
	return s.credentials.first(ctx, cluster, idOrName, func(credential api.Credential) bool {
		return credential.ReplacedBy == nil && (credential.ID == idOrName || credential.Name == idOrName)
	})
}
