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
	accountRoles   = []string{"owner", "admin", "developer", "billing", "reader", "viewer", "member"}
	projectRoles   = []string{"owner", "admin", "developer", "billing", "reader", "viewer"}
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
					Required: true, MarkdownDescription: "Name, unique in the organization.",
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
			project, err := s.projectNamed(ctx, name)
			return project.ID, err
		}),
	}
}

func createProject(
	ctx context.Context, s *session, plan *projectModel, _ projectModel,
) (bool, error) {
	labels := textsOf(plan.Labels)
	project, err := s.api.CreateProject(ctx, api.ProjectWish{
		Name: plan.Name.ValueStringPointer(), Labels: &labels,
	})
	if err != nil {
		return false, err
	}
	s.projects.Put(organization, project)
	plan.show(project)
	return true, nil
}

// show fills in the attributes that the service decides.
func (m *projectModel) show(project api.Project) {
	m.ID = types.StringValue(project.ID)
	m.CreatedAt = types.StringValue(project.CreatedAt)
}

func readProject(ctx context.Context, s *session, state *projectModel) error {
	id := state.ID.ValueString()
	project, err := s.projects.get(ctx, organization, id)
	if err != nil {
		return err
	}
	state.Name = types.StringValue(project.Name)
	state.Labels = mapUnlessNone(project.Labels, state.Labels)
	state.show(project)
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
	project, err := s.api.UpdateProject(ctx, state.ID.ValueString(), change)
	if err != nil {
		return err
	}
	s.projects.Put(organization, project)
	plan.show(project)
	return nil
}

func removeProject(ctx context.Context, s *session, state projectModel) error {
	id := state.ID.ValueString()
	return s.projects.removed(organization, id, s.api.DeleteProject(ctx, id))
}

// projectNamed finds a project by its id or its name.
func (s *session) projectNamed(ctx context.Context, name string) (api.Project, error) {
	return s.projects.first(ctx, organization, name, func(project api.Project) bool {
		return project.ID == name || project.Name == name
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
			account, err := s.serviceAccountNamed(ctx, name)
			return account.ID, err
		}),
	}
}

func serviceAccountSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A program of the organization, which acts by API keys of its own. Its " +
			"keys are made in the console or by the command line, where their secrets are shown once.",
		Attributes: map[string]schema.Attribute{
			"id": computedText("Id, such as `sa_5xw4mzn6yt2ba3k2jq7v`."),
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "Name, unique in the organization.",
			},
			"description": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(""),
				MarkdownDescription: "What it is for.",
			},
			"role": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("member"),
				MarkdownDescription: "Role in the organization: " + quoted(accountRoles) + ", at most " +
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
	account, err := s.api.CreateServiceAccount(ctx, api.NewServiceAccount{
		Name:        plan.Name.ValueString(),
		Description: plan.Description.ValueString(),
		Role:        plan.Role.ValueString(),
	})
	if err != nil {
		return false, err
	}
	disable := plan.Disabled.ValueBool()
	plan.show(account)
	if disable {
		change := api.ServiceAccountChange{Disabled: &disable}
		account, err = s.api.UpdateServiceAccount(ctx, account.ID, change)
		if err != nil {
			return true, err
		}
		plan.show(account)
	}
	s.serviceAccounts.Put(organization, account)
	return true, nil
}

func (m *serviceAccountModel) show(account api.ServiceAccount) {
	m.ID = types.StringValue(account.ID)
	m.Name = types.StringValue(account.Name)
	m.Description = types.StringValue(account.Description)
	m.Role = types.StringValue(account.Role)
	m.Disabled = types.BoolValue(account.Disabled)
	m.CreatedAt = types.StringValue(account.CreatedAt)
}

func readServiceAccount(ctx context.Context, s *session, state *serviceAccountModel) error {
	account, err := s.serviceAccounts.get(ctx, organization, state.ID.ValueString())
	if err == nil {
		state.show(account)
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
	account, err := s.api.UpdateServiceAccount(ctx, state.ID.ValueString(), change)
	if err != nil {
		return err
	}
	s.serviceAccounts.Put(organization, account)
	plan.show(account)
	return nil
}

func removeServiceAccount(ctx context.Context, s *session, state serviceAccountModel) error {
	id := state.ID.ValueString()
	return s.serviceAccounts.removed(organization, id, s.api.DeleteServiceAccount(ctx, id))
}

// serviceAccountNamed finds a service account by its id or its name.
func (s *session) serviceAccountNamed(
	ctx context.Context, name string,
) (api.ServiceAccount, error) {
	return s.serviceAccounts.first(ctx, organization, name, func(account api.ServiceAccount) bool {
		return account.ID == name || account.Name == name
	})
}
