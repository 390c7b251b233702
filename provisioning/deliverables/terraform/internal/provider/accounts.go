package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

var (
	accountRoles   = []string{"owner", "admin", "developer", "billing", "viewer", "member"}
	projectRoles   = []string{"owner", "admin", "developer", "billing", "viewer"}
	principalTypes = []string{"user", "service_account"}
)

type projectModel struct {
	ID        types.String `tfsdk:"id"`
	Name      types.String `tfsdk:"name"`
	Labels    types.Map    `tfsdk:"labels"`
	CreatedAt types.String `tfsdk:"created_at"`
}

func projectResource() resource.Resource {
	return &managed[projectModel]{
		frame: frame{name: "project"},
		schema: schema.Schema{
			MarkdownDescription: "A project: clusters that belong together, and what roles are given " +
				"in. It can be destroyed when it has no clusters.",
			Attributes: map[string]schema.Attribute{
				"id": computedText("Id, such as `prj_4xw2m7kq5v3nzjt6ybac`."),
				"name": schema.StringAttribute{
					Required: true, MarkdownDescription: "Name, unique in the organisation.",
				},
				"labels": schema.MapAttribute{
					Optional: true, ElementType: types.StringType,
					MarkdownDescription: "Labels, all of them.",
				},
				"created_at": computedText("When it was made, RFC 3339."),
			},
		},
		create: createProject,
		read:   readProject,
		update: updateProject,
		remove: removeProject,
		identify: identifyBy("prj_", func(ctx context.Context, s *session, name string) (string, error) {
			found, err := s.projectNamed(ctx, name)
			return found.ID, err
		}),
	}
}

func createProject(
	ctx context.Context, s *session, plan *projectModel, _ projectModel,
) (bool, error) {
	labels := textsOf(plan.Labels)
	made, err := s.api.CreateProject(ctx, api.ProjectWish{
		Name: plan.Name.ValueStringPointer(), Labels: &labels,
	})
	if err != nil {
		return false, err
	}
	s.projects.Put(organization, made)
	plan.show(made)
	return true, nil
}

// show fills in what is computed.
func (m *projectModel) show(found api.Project) {
	m.ID = types.StringValue(found.ID)
	m.CreatedAt = types.StringValue(found.CreatedAt)
}

func readProject(ctx context.Context, s *session, state *projectModel) error {
	id := state.ID.ValueString()
	found, err := s.projects.get(ctx, organization, id)
	if err != nil {
		return err
	}
	state.Name = types.StringValue(found.Name)
	state.Labels = mapUnlessNone(found.Labels, state.Labels)
	state.show(found)
	return nil
}

func updateProject(
	ctx context.Context, s *session, plan *projectModel, state, _ projectModel,
) error {
	change := api.ProjectWish{}
	if !plan.Name.Equal(state.Name) {
		change.Name = plan.Name.ValueStringPointer()
	}
	if labels := textsOf(plan.Labels); !maps.Equal(labels, textsOf(state.Labels)) {
		change.Labels = &labels
	}
	found, err := s.api.UpdateProject(ctx, state.ID.ValueString(), change)
	if err != nil {
		return err
	}
	s.projects.Put(organization, found)
	plan.show(found)
	return nil
}

func removeProject(ctx context.Context, s *session, state projectModel) error {
	id := state.ID.ValueString()
	return s.projects.removed(organization, id, s.api.DeleteProject(ctx, id))
}

func (s *session) projectNamed(ctx context.Context, name string) (api.Project, error) {
	return s.projects.first(ctx, organization, name, func(each api.Project) bool {
		return each.ID == name || each.Name == name
	})
}

type serviceAccountModel struct {
	ID          types.String `tfsdk:"id"`
	Name        types.String `tfsdk:"name"`
	Description types.String `tfsdk:"description"`
	Role        types.String `tfsdk:"role"`
	Disabled    types.Bool   `tfsdk:"disabled"`
	CreatedAt   types.String `tfsdk:"created_at"`
}

func serviceAccountResource() resource.Resource {
	return &managed[serviceAccountModel]{
		frame:  frame{name: "service_account"},
		schema: serviceAccountSchema(),
		create: createServiceAccount,
		read:   readServiceAccount,
		update: updateServiceAccount,
		remove: removeServiceAccount,
		identify: identifyBy("sa_", func(ctx context.Context, s *session, name string) (string, error) {
			found, err := s.serviceAccountNamed(ctx, name)
			return found.ID, err
		}),
	}
}

func serviceAccountSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A program of the organisation, which acts by API keys of its own. Its " +
			"keys are made in the console or by the command line, where their secrets are shown once.",
		Attributes: map[string]schema.Attribute{
			"id": computedText("Id, such as `sa_5xw4mzn6yt2ba3k2jq7v`."),
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "Name, unique in the organisation.",
			},
			"description": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(""),
				MarkdownDescription: "What it is for.",
			},
			"role": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("member"),
				MarkdownDescription: "Role in the organisation: " + quoted(accountRoles) + ", at most " +
					"your own. Default: `member`, which grants nothing but what `freshet_role_binding` " +
					"gives.",
				Validators: []validator.String{stringvalidator.OneOf(accountRoles...)},
			},
			"disabled": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Whether its keys are refused. Default: `false`.",
			},
			"created_at": computedText("When it was made, RFC 3339."),
		},
	}
}

func createServiceAccount(
	ctx context.Context, s *session, plan *serviceAccountModel, _ serviceAccountModel,
) (bool, error) {
	made, err := s.api.CreateServiceAccount(ctx, api.NewServiceAccount{
		Name:        plan.Name.ValueString(),
		Description: plan.Description.ValueString(),
		Role:        plan.Role.ValueString(),
	})
	if err != nil {
		return false, err
	}
	disable := plan.Disabled.ValueBool()
	plan.show(made)
	if disable {
		change := api.ServiceAccountChange{Disabled: &disable}
		made, err = s.api.UpdateServiceAccount(ctx, made.ID, change)
		if err != nil {
			return true, err
		}
		plan.show(made)
	}
	s.serviceAccounts.Put(organization, made)
	return true, nil
}

func (m *serviceAccountModel) show(found api.ServiceAccount) {
	m.ID = types.StringValue(found.ID)
	m.Name = types.StringValue(found.Name)
	m.Description = types.StringValue(found.Description)
	m.Role = types.StringValue(found.Role)
	m.Disabled = types.BoolValue(found.Disabled)
	m.CreatedAt = types.StringValue(found.CreatedAt)
}

func readServiceAccount(ctx context.Context, s *session, state *serviceAccountModel) error {
	found, err := s.serviceAccounts.get(ctx, organization, state.ID.ValueString())
	if err == nil {
		state.show(found)
	}
	return err
}

func updateServiceAccount(
	ctx context.Context, s *session, plan *serviceAccountModel, state, _ serviceAccountModel,
) error {
	change := api.ServiceAccountChange{}
	if !plan.Name.Equal(state.Name) {
		change.Name = plan.Name.ValueStringPointer()
	}
	if !plan.Description.Equal(state.Description) {
		change.Description = plan.Description.ValueStringPointer()
	}
	if !plan.Role.Equal(state.Role) {
		change.Role = plan.Role.ValueStringPointer()
	}
	if !plan.Disabled.Equal(state.Disabled) {
		change.Disabled = plan.Disabled.ValueBoolPointer()
	}
	found, err := s.api.UpdateServiceAccount(ctx, state.ID.ValueString(), change)
	if err != nil {
		return err
	}
	s.serviceAccounts.Put(organization, found)
	plan.show(found)
	return nil
}

func removeServiceAccount(ctx context.Context, s *session, state serviceAccountModel) error {
	id := state.ID.ValueString()
	return s.serviceAccounts.removed(organization, id, s.api.DeleteServiceAccount(ctx, id))
}

func (s *session) serviceAccountNamed(
	ctx context.Context, name string,
) (api.ServiceAccount, error) {
	return s.serviceAccounts.first(ctx, organization, name, func(each api.ServiceAccount) bool {
		return each.ID == name || each.Name == name
	})
}
