package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

const (
	credentialNameMax = 100
	passwordMin       = 16
	passwordMax       = 128
)

var (
	credentialRoles = []string{"full", "producer", "consumer", "none"}
	mechanisms      = []string{"SCRAM-SHA-256", "SCRAM-SHA-512"}
)

type credentialModel struct {
	ID                types.String `tfsdk:"id"`
	ClusterID         types.String `tfsdk:"cluster_id"`
	Name              types.String `tfsdk:"name"`
	Role              types.String `tfsdk:"role"`
	Mechanism         types.String `tfsdk:"mechanism"`
	PasswordWO        types.String `tfsdk:"password_wo"`
	PasswordWOVersion types.Int64  `tfsdk:"password_wo_version"`
	Username          types.String `tfsdk:"username"`
	Principal         types.String `tfsdk:"principal"`
	CreatedAt         types.String `tfsdk:"created_at"`
}

func credentialResource() resource.Resource {
	return newManaged(definition[credentialModel]{
		name:     "credential",
		schema:   credentialSchema(),
		create:   createCredential,
		read:     readCredential,
		remove:   removeCredential,
		identify: identifyCredential,
	})
}

func credentialSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A credential of Kafka clients. Its password comes from you, by a " +
			"write-only attribute: it is in no state and in no plan. Give the same ephemeral value to " +
			"the secret store that your clients read.",
		Attributes: map[string]schema.Attribute{
			"id":         computedText("Id, such as `cred_5xw4mzn6yt2ba3k2jq7v`."),
			"cluster_id": inACluster(),
			"name": fixedText("Name, unique in the cluster.",
				stringvalidator.LengthBetween(1, credentialNameMax)),
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
					"see that by itself. It makes a new credential.",
				Validators: []validator.Int64{
					int64validator.AlsoRequires(path.MatchRoot("password_wo")),
				},
				PlanModifiers: []planmodifier.Int64{int64planmodifier.RequiresReplace()},
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
	s.credentials.Put(cluster, made.Credential)
	plan.show(made.Credential)
	return true, nil
}

func readCredential(ctx context.Context, s *session, state *credentialModel) error {
	id := state.ID.ValueString()
	found, there, err := s.credentials.Find(ctx, state.ClusterID.ValueString(), id)
	if err != nil {
		return err
	}
	if !there {
		return absent("credential", id)
	}
	state.show(found)
	return nil
}

func (m *credentialModel) show(found api.Credential) {
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
	if err := s.api.DeleteCredential(ctx, cluster, id); err != nil {
		return err
	}
	s.credentials.Remove(cluster, id)
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
	all, err := s.credentials.All(ctx, cluster)
	if err != nil {
		return api.Credential{}, err
	}
	for _, each := range all {
		if each.ID == idOrName || each.Name == idOrName {
			return each, nil
		}
	}
	return api.Credential{}, absent("credential", idOrName)
}
