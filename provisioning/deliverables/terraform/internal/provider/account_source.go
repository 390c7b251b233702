package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

// shownProject is a project as data sources show it, with whether it is the default one.
type shownProject struct {
	projectModel
	Default types.Bool `tfsdk:"default"`
}

func showProject(project api.Project) shownProject {
	shown := shownProject{Default: types.BoolValue(project.Default)}
	shown.Name, shown.Labels = types.StringValue(project.Name), mapOf(project.Labels)
	shown.show(project)
	return shown
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
	shows := projectAttributes()
	shows["name"] = givenText("Name of the project.")
	return newSource("project", "A project, by its name.", shows,
		func(ctx context.Context, s *session, model *shownProject) error {
			project, err := s.projectNamed(ctx, model.Name.ValueString())
			*model = showProject(project)
			return err
		})
}

type projectsModel struct {
	Projects []shownProject `tfsdk:"projects"`
}

func projectsSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"projects": shownList("The projects, by id.", projectAttributes()),
	}
	return newSource("projects", "All projects of the organization.", shows,
		func(ctx context.Context, s *session, model *projectsModel) error {
			all, err := s.projects.All(ctx, organization)
			model.Projects = shownAll(all, every, showProject)
			return err
		})
}

func serviceAccountAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":          shownText("Id."),
		"name":        shownText("Name."),
		"description": shownText("What it is for."),
		"role":        shownText("Role in the organization."),
		"disabled":    shownFlag("Whether its keys are refused."),
		"created_at":  shownText("When it was made, RFC 3339."),
	}
}

func serviceAccountSource() datasource.DataSource {
	shows := serviceAccountAttributes()
	shows["name"] = givenText("Name of the service account.")
	return newSource("service_account", "A service account, by its name.", shows,
		func(ctx context.Context, s *session, model *serviceAccountModel) error {
			account, err := s.serviceAccountNamed(ctx, model.Name.ValueString())
			model.show(account)
			return err
		})
}

type serviceAccountsModel struct {
	ServiceAccounts []serviceAccountModel `tfsdk:"service_accounts"`
}

func serviceAccountsSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"service_accounts": shownList("The accounts, by id.", serviceAccountAttributes()),
	}
	return newSource("service_accounts", "All service accounts of the organization.", shows,
		func(ctx context.Context, s *session, model *serviceAccountsModel) error {
			all, err := s.serviceAccounts.All(ctx, organization)
			model.ServiceAccounts = shownAll(all, every,
				shownBy[serviceAccountModel, api.ServiceAccount])
			return err
		})
}

type roleBindingsModel struct {
	ProjectID    types.String       `tfsdk:"project_id"`
	RoleBindings []roleBindingModel `tfsdk:"role_bindings"`
}

func roleBindingsSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"project_id": filterText("Only those in this project."),
		"role_bindings": shownList("The roles, by id.", map[string]schema.Attribute{
			"id":             shownText("Id."),
			"principal_type": shownText("Who: " + quoted(principalTypes) + "."),
			"principal_id":   shownText("The user's or the service account's id."),
			"project_id":     shownText("Id of the project."),
			"role":           shownText("The role."),
			"created_at":     shownText("When it was given, RFC 3339."),
		}),
	}
	return newSource("role_bindings", "Roles of users and service accounts in projects.", shows,
		func(ctx context.Context, s *session, model *roleBindingsModel) error {
			all, err := s.roleBindings.All(ctx, organization)
			model.RoleBindings = shownAll(all, func(binding api.RoleBinding) bool {
				return fitsFilter(model.ProjectID, binding.ProjectID)
			}, shownBy[roleBindingModel, api.RoleBinding])
			return err
		})
}
