package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

type shownProject struct {
	ID        types.String `tfsdk:"id"`
	Name      types.String `tfsdk:"name"`
	Labels    types.Map    `tfsdk:"labels"`
	Default   types.Bool   `tfsdk:"default"`
	CreatedAt types.String `tfsdk:"created_at"`
}

func showProject(found api.Project) shownProject {
	return shownProject{
		ID:        types.StringValue(found.ID),
		Name:      types.StringValue(found.Name),
		Labels:    mapOf(found.Labels),
		Default:   types.BoolValue(found.Default),
		CreatedAt: types.StringValue(found.CreatedAt),
	}
}

func projectAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":         shownText("Id."),
		"name":       shownText("Name."),
		"labels":     shownMap("Labels."),
		"default":    shownFlag("Whether clusters are in it that name no project."),
		"created_at": shownText("When it was made, RFC 3339."),
	}
}

func projectSource() datasource.DataSource {
	attributes := projectAttributes()
	attributes["name"] = givenText("Name of the project.")
	return newSource(sourceDefinition[shownProject]{
		name: "project",
		schema: schema.Schema{
			MarkdownDescription: "A project, by its name.", Attributes: attributes,
		},
		read: func(ctx context.Context, s *session, model *shownProject) error {
			found, err := s.projectNamed(ctx, model.Name.ValueString())
			*model = showProject(found)
			return err
		},
	})
}

type projectsModel struct {
	Projects []shownProject `tfsdk:"projects"`
}

func projectsSource() datasource.DataSource {
	return newSource(sourceDefinition[projectsModel]{
		name: "projects",
		schema: schema.Schema{
			MarkdownDescription: "All projects of the organisation.",
			Attributes: map[string]schema.Attribute{
				"projects": shownList("The projects, by id.", projectAttributes()),
			},
		},
		read: func(ctx context.Context, s *session, model *projectsModel) error {
			all, err := s.projects.All(ctx, organization)
			model.Projects = []shownProject{}
			for _, each := range all {
				model.Projects = append(model.Projects, showProject(each))
			}
			return err
		},
	})
}

type shownServiceAccount struct {
	ID          types.String `tfsdk:"id"`
	Name        types.String `tfsdk:"name"`
	Description types.String `tfsdk:"description"`
	Role        types.String `tfsdk:"role"`
	Disabled    types.Bool   `tfsdk:"disabled"`
	CreatedAt   types.String `tfsdk:"created_at"`
}

func showServiceAccount(found api.ServiceAccount) shownServiceAccount {
	return shownServiceAccount{
		ID:          types.StringValue(found.ID),
		Name:        types.StringValue(found.Name),
		Description: types.StringValue(found.Description),
		Role:        types.StringValue(found.Role),
		Disabled:    types.BoolValue(found.Disabled),
		CreatedAt:   types.StringValue(found.CreatedAt),
	}
}

func serviceAccountAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":          shownText("Id."),
		"name":        shownText("Name."),
		"description": shownText("What it is for."),
		"role":        shownText("Role in the organisation."),
		"disabled":    shownFlag("Whether its keys are refused."),
		"created_at":  shownText("When it was made, RFC 3339."),
	}
}

func serviceAccountSource() datasource.DataSource {
	attributes := serviceAccountAttributes()
	attributes["name"] = givenText("Name of the service account.")
	return newSource(sourceDefinition[shownServiceAccount]{
		name: "service_account",
		schema: schema.Schema{
			MarkdownDescription: "A service account, by its name.", Attributes: attributes,
		},
		read: func(ctx context.Context, s *session, model *shownServiceAccount) error {
			found, err := s.serviceAccountNamed(ctx, model.Name.ValueString())
			*model = showServiceAccount(found)
			return err
		},
	})
}

type serviceAccountsModel struct {
	ServiceAccounts []shownServiceAccount `tfsdk:"service_accounts"`
}

func serviceAccountsSource() datasource.DataSource {
	return newSource(sourceDefinition[serviceAccountsModel]{
		name: "service_accounts",
		schema: schema.Schema{
			MarkdownDescription: "All service accounts of the organisation.",
			Attributes: map[string]schema.Attribute{
				"service_accounts": shownList("The accounts, by id.", serviceAccountAttributes()),
			},
		},
		read: func(ctx context.Context, s *session, model *serviceAccountsModel) error {
			all, err := s.serviceAccounts.All(ctx, organization)
			model.ServiceAccounts = []shownServiceAccount{}
			for _, each := range all {
				model.ServiceAccounts = append(model.ServiceAccounts, showServiceAccount(each))
			}
			return err
		},
	})
}

type roleBindingsModel struct {
	ProjectID    types.String       `tfsdk:"project_id"`
	RoleBindings []roleBindingModel `tfsdk:"role_bindings"`
}

func roleBindingsSource() datasource.DataSource {
	return newSource(sourceDefinition[roleBindingsModel]{
		name: "role_bindings",
		schema: schema.Schema{
			MarkdownDescription: "Roles of users and service accounts in projects.",
			Attributes: map[string]schema.Attribute{
				"project_id": schema.StringAttribute{
					Optional: true, MarkdownDescription: "Only those in this project.",
				},
				"role_bindings": shownList("The roles, by id.", map[string]schema.Attribute{
					"id":             shownText("Id."),
					"principal_type": shownText("Who: " + quoted(principalTypes) + "."),
					"principal_id":   shownText("The user's or the service account's id."),
					"project_id":     shownText("Id of the project."),
					"role":           shownText("The role."),
					"created_at":     shownText("When it was given, RFC 3339."),
				}),
			},
		},
		read: func(ctx context.Context, s *session, model *roleBindingsModel) error {
			all, err := s.roleBindings.All(ctx, organization)
			model.RoleBindings = []roleBindingModel{}
			for _, each := range all {
				if model.ProjectID.IsNull() || model.ProjectID.ValueString() == each.ProjectID {
					var shown roleBindingModel
					shown.show(each)
					model.RoleBindings = append(model.RoleBindings, shown)
				}
			}
			return err
		},
	})
}
