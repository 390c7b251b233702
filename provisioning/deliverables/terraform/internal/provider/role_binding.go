package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

type roleBindingModel struct {
	ID            types.String `tfsdk:"id"`
	PrincipalType types.String `tfsdk:"principal_type"`
	PrincipalID   types.String `tfsdk:"principal_id"`
	ProjectID     types.String `tfsdk:"project_id"`
	Role          types.String `tfsdk:"role"`
	CreatedAt     types.String `tfsdk:"created_at"`
}

func roleBindingResource() resource.Resource {
	return &managed[roleBindingModel]{
		frame: frame{name: "role_binding"},
		schema: schema.Schema{
			MarkdownDescription: "A role of a user or a service account in a project. What the role in " +
				"the organization does not grant, this one may, for the project's clusters and all in " +
				"them.",
			Attributes: map[string]schema.Attribute{
				"id": computedText("Id, such as `rb_5xw4mzn6yt2ba3k2jq7v`."),
				"principal_type": fixedText("Who: "+quoted(principalTypes)+".",
					stringvalidator.OneOf(principalTypes...)),
				"principal_id": fixedText("The service account's id, or the user's, such as " +
					"`data.freshet_member.anna.user_id`."),
				"project_id": fixedText("Id of the project."),
				"role": fixedText("The role: "+quoted(projectRoles)+".",
					stringvalidator.OneOf(projectRoles...)),
				"created_at": computedText("When it was given, RFC 3339."),
			},
		},
		create: createRoleBinding,
		read:   readRoleBinding,
		remove: func(ctx context.Context, s *session, state roleBindingModel) error {
			id := state.ID.ValueString()
			return s.roleBindings.removed(organization, id, s.api.DeleteRoleBinding(ctx, id))
		},
		identify: func(_ context.Context, _ *session, id string) (map[string]string, error) {
			return map[string]string{"id": id}, nil
		},
	}
}

func createRoleBinding(
	ctx context.Context, s *session, plan *roleBindingModel, _ roleBindingModel,
) (bool, error) {
	binding, err := s.api.CreateRoleBinding(ctx, api.NewRoleBinding{
		PrincipalType: plan.PrincipalType.ValueString(),
		PrincipalID:   plan.PrincipalID.ValueString(),
		ProjectID:     plan.ProjectID.ValueString(),
		Role:          plan.Role.ValueString(),
	})
	if err != nil {
		return false, err
	}
	s.roleBindings.Put(organization, binding)
	plan.show(binding)
	return true, nil
}

func readRoleBinding(ctx context.Context, s *session, state *roleBindingModel) error {
	binding, err := s.roleBindings.get(ctx, organization, state.ID.ValueString())
	if err == nil {
		state.show(binding)
	}
	return err
}

func (m *roleBindingModel) show(binding api.RoleBinding) {
	m.ID = types.StringValue(binding.ID)
	m.PrincipalType = types.StringValue(binding.PrincipalType)
	m.PrincipalID = types.StringValue(binding.PrincipalID)
	m.ProjectID = types.StringValue(binding.ProjectID)
	m.Role = types.StringValue(binding.Role)
	m.CreatedAt = types.StringValue(binding.CreatedAt)
}
