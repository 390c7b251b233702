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

// credentialFacts are what there is to know of a credential, as the resource and the data sources
// have it.
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
	found, err := s.currentCredential(ctx, state)
	if err != nil {
		return err
	}
	if state.RotationOverlapS.IsNull() {
		state.RotationOverlapS = types.Int64Value(overlapDefault)
	}
	state.show(found)
	return nil
}

// currentCredential follows one that somebody else rotated to the one in its place, also after its
// overlap is over and it is gone: names are unique.
func (s *session) currentCredential(
	ctx context.Context, state *credentialModel,
) (api.Credential, error) {
	cluster, id := state.ClusterID.ValueString(), state.ID.ValueString()
	found, there, err := s.credentials.Find(ctx, cluster, id)
	if err != nil {
		return found, err
	}
	if there && found.ReplacedBy == nil {
		return found, nil
	}
	name := state.Name.ValueString()
	if there {
		name = found.Name
	}
	if name == "" {
		return found, absent("credential", id)
	}
	return s.credentialNamed(ctx, cluster, name)
}

func updateCredential(
	ctx context.Context, s *session, plan *credentialModel, state, config credentialModel,
) error {
	cluster, id := state.ClusterID.ValueString(), state.ID.ValueString()
	if !plan.Name.Equal(state.Name) {
		found, err := s.api.RenameCredential(ctx, cluster, id, plan.Name.ValueString())
		if err != nil {
			return err
		}
		s.credentials.Put(cluster, found)
		plan.show(found)
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
	s.credentials.Forget(cluster) // the one before has changed too
	plan.show(made.Credential())
	return nil
}

// planRotation says that a rotation makes another user.
func planRotation(state credentialModel, plan *credentialModel, _ *diag.Diagnostics) {
	if plan.PasswordWOVersion.Equal(state.PasswordWOVersion) {
		return
	}
	plan.ID = types.StringUnknown()
	plan.Username = types.StringUnknown()
	plan.Principal = types.StringUnknown()
	plan.CreatedAt = types.StringUnknown()
}

func (m *credentialFacts) show(found api.Credential) {
	m.ID = types.StringValue(found.ID)
	m.Name = types.StringValue(found.Name)
	m.Role = types.StringValue(found.Role)
	m.Mechanism = types.StringValue(found.Mechanism)
	m.Username = types.StringValue(found.Username)
	m.Principal = types.StringValue(found.Principal)
	m.CreatedAt = types.StringValue(found.CreatedAt)
}

func removeCredential(ctx context.Context, s *session, state credentialModel) error {
	cluster, id := state.ClusterID.ValueString(), state.ID.ValueString()
	going := []string{id}
	all, err := s.credentials.All(ctx, cluster)
	if err != nil && !api.IsNotFound(err) {
		return err
	}
	for _, each := range all {
		if each.ReplacedBy != nil && *each.ReplacedBy == id {
			going = append(going, each.ID) // what is left of a rotation
		}
	}
	for _, each := range going {
		err := s.credentials.removed(cluster, each, s.api.DeleteCredential(ctx, cluster, each))
		if err != nil {
			return err
		}
	}
	return nil
}

// identifyCredential takes cluster/name or cluster/id.
func identifyCredential(ctx context.Context, s *session, id string) (map[string]string, error) {
	cluster, name, err := s.inCluster(ctx, id)
	if err != nil {
		return nil, err
	}
	found, err := s.credentialNamed(ctx, cluster, name)
	return map[string]string{"cluster_id": cluster, "id": found.ID}, err
}

// credentialNamed finds a credential by its id or its name.
func (s *session) credentialNamed(
	ctx context.Context, cluster, idOrName string,
) (api.Credential, error) {
	return s.credentials.first(ctx, cluster, idOrName, func(each api.Credential) bool {
		return each.ReplacedBy == nil && (each.ID == idOrName || each.Name == idOrName)
	})
}
