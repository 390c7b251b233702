// Package provider has the resources, data sources and ephemeral resources that Terraform sees.
//
// managed.go has what all resources have in common, source.go all data sources, transient.go all
// ephemeral resources, and frame.go all three; rule.go has what alerts and budgets have in common.
// find.go looks things up in the lists that a run reads once. Every other file has the models,
// schemas and functions of one kind of thing.
package provider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"freshet/terraform/internal/api"
)

// Address names the provider to a debugger.
const Address = "freshet.example.com/freshet/freshet"

// typePrefix begins the names of all types.
const typePrefix = "freshet_"

const (
	endpointVariable = "FRESHET_ENDPOINT"
	keyVariable      = "FRESHET_API_KEY"
)

type freshet struct{ version string }

type settings struct {
	Endpoint types.String `tfsdk:"endpoint"`
	APIKey   types.String `tfsdk:"api_key"`
}

var (
	_ provider.Provider                       = (*freshet)(nil)
	_ provider.ProviderWithEphemeralResources = (*freshet)(nil)
)

// New returns a function that makes the provider.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &freshet{version: version} }
}

func (p *freshet) Metadata(
	_ context.Context, _ provider.MetadataRequest, answer *provider.MetadataResponse,
) {
	answer.TypeName = "freshet"
	answer.Version = p.version
}

func (p *freshet) Schema(
	_ context.Context, _ provider.SchemaRequest, answer *provider.SchemaResponse,
) {
	answer.Schema = schema.Schema{
		MarkdownDescription: "Kafka clusters of Freshet with all that is in them. " +
			"One API key manages everything of an organization.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Address of the service, such as `https://freshet.example.com`. " +
					"Without it, the environment variable `" + endpointVariable + "`.",
			},
			"api_key": schema.StringAttribute{
				Optional:  true,
				Sensitive: true,
				MarkdownDescription: "Secret of an API key. " +
					"Without it, the environment variable `" + keyVariable + "`, which is to be preferred.",
			},
		},
	}
}

func (p *freshet) Configure(
	ctx context.Context, request provider.ConfigureRequest, answer *provider.ConfigureResponse,
) {
	var configured settings
	answer.Diagnostics.Append(request.Config.Get(ctx, &configured)...)
	endpoint := orEnvironment(configured.Endpoint, "endpoint", endpointVariable, answer)
	key := orEnvironment(configured.APIKey, "api_key", keyVariable, answer)
	if answer.Diagnostics.HasError() {
		return
	}
	client, err := api.New(api.Options{
		Endpoint:  endpoint,
		Key:       key,
		UserAgent: "terraform-provider-freshet/" + p.version + " terraform/" + request.TerraformVersion,
		Observe:   logAttempt,
	})
	if err != nil {
		answer.Diagnostics.AddAttributeError(path.Root("endpoint"), "The endpoint is not usable",
			err.Error())
		return
	}
	session := newSession(client)
	answer.ResourceData = session
	answer.DataSourceData = session
	answer.EphemeralResourceData = session
}

// orEnvironment returns a text of the provider's configuration, or the environment variable where
// it is not set. It adds an error where both are missing.
func orEnvironment(
	configured types.String, name, variable string, answer *provider.ConfigureResponse,
) string {
	if configured.IsUnknown() {
		answer.Diagnostics.AddAttributeError(path.Root(name), name+" is not known yet",
			"It depends on what is made in the same run. Make that first, or set "+variable+".")
		return ""
	}
	if text := configured.ValueString(); text != "" {
		return text
	}
	text := os.Getenv(variable)
	if text == "" {
		answer.Diagnostics.AddAttributeError(path.Root(name), name+" is missing",
			"Give it in the provider's block, or set "+variable+".")
	}
	return text
}

// logAttempt logs a request of the API's client.
func logAttempt(ctx context.Context, attempt api.Attempt) {
	fields := map[string]any{
		"method": attempt.Method, "path": attempt.Path, "status": attempt.Status,
	}
	if attempt.Err != nil {
		fields["error"] = attempt.Err.Error()
	}
	tflog.Debug(ctx, "request to Freshet", fields)
}

func (p *freshet) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		clusterResource,
		topicResource,
		aclResource,
		credentialResource,
		clientQuotaResource,
		budgetResource,
		alertResource,
		projectResource,
		serviceAccountResource,
		roleBindingResource,
		memberResource,
		organizationSettingsResource,
	}
}

func (p *freshet) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		clusterSource, clustersSource,
		topicSource, topicsSource,
		aclsSource,
		credentialSource, credentialsSource,
		clientQuotasSource,
		budgetSource, budgetsSource,
		alertSource, alertsSource,
		projectSource, projectsSource,
		serviceAccountSource, serviceAccountsSource,
		roleBindingsSource,
		memberSource, membersSource,
		organizationSource,
		regionsSource, limitsSource, usageSource,
	}
}

func (p *freshet) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{credentialEphemeral, apiKeyEphemeral}
}
