package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

const (
	passingNameMax = 80
	// A key that was never closed, because the run was killed, ends by itself after so many
	// seconds.
	keyLifetimeDefault = 3600
	keyLifetimeMin     = 60
	keyLifetimeMax     = 24 * 3600
)

var keyRoles = []string{"admin", "developer", "billing", "reader", "viewer"}

type credentialEphemeralModel struct {
	ClusterID        types.String `tfsdk:"cluster_id"`
	Name             types.String `tfsdk:"name"`
	Role             types.String `tfsdk:"role"`
	ID               types.String `tfsdk:"id"`
	Username         types.String `tfsdk:"username"`
	Password         types.String `tfsdk:"password"`
	Mechanism        types.String `tfsdk:"mechanism"`
	Principal        types.String `tfsdk:"principal"`
	BootstrapServers types.String `tfsdk:"bootstrap_servers"`
}

func credentialEphemeral() ephemeral.EphemeralResource {
	return &transient[credentialEphemeralModel]{
		frame: frame{name: "credential"},
		schema: schema.Schema{
			MarkdownDescription: "A credential of Kafka clients for this run alone: made when it is " +
				"needed, deleted at the end, in no state and no plan. For what else a run does with " +
				"the cluster, such as another provider or a check.",
			Attributes: map[string]schema.Attribute{
				"cluster_id": schema.StringAttribute{
					Required: true, MarkdownDescription: "Id of the cluster.",
				},
				"name": passingNameAttribute(),
				"role": schema.StringAttribute{
					Required:            true,
					MarkdownDescription: "Its rights: " + quoted(credentialRoles) + ".",
					Validators:          []validator.String{stringvalidator.OneOf(credentialRoles...)},
				},
				"id":                givenOut("Id."),
				"username":          givenOut("User name."),
				"password":          secretOut("Password."),
				"mechanism":         givenOut("How to authenticate."),
				"principal":         givenOut("Name in ACLs."),
				"bootstrap_servers": givenOut("`host:port,…` of the cluster."),
			},
		},
		open: openCredential,
		end:  closeCredential,
	}
}

func passingNameAttribute() schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true,
		MarkdownDescription: "How its name begins; something random follows. Default: " +
			"`terraform`.",
		Validators: []validator.String{stringvalidator.LengthBetween(1, passingNameMax)},
	}
}

func givenOut(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

func secretOut(description string) schema.StringAttribute {
	return schema.StringAttribute{
		Computed: true, Sensitive: true, MarkdownDescription: description,
	}
}

func openCredential(
	ctx context.Context, s *session, model *credentialEphemeralModel,
) (map[string]string, error) {
	cluster := model.ClusterID.ValueString()
	where, err := s.api.Cluster(ctx, cluster)
	if err != nil {
		return nil, err
	}
	made, err := s.api.CreateCredential(ctx, cluster, api.NewCredential{
		Name: passingName(model.Name.ValueString()), Role: model.Role.ValueString(),
	})
	if err != nil {
		return nil, err
	}
	model.ID = types.StringValue(made.ID)
	model.Username = types.StringValue(made.Username)
	model.Password = types.StringValue(made.Password)
	model.Mechanism = types.StringValue(made.Mechanism)
	model.Principal = types.StringValue(made.Principal)
	model.BootstrapServers = types.StringValue(where.BootstrapServers)
	return map[string]string{"cluster": cluster, "id": made.ID}, nil
}

func closeCredential(ctx context.Context, s *session, handle map[string]string) error {
	return s.api.DeleteCredential(ctx, handle["cluster"], handle["id"])
}

type apiKeyEphemeralModel struct {
	Name             types.String `tfsdk:"name"`
	Role             types.String `tfsdk:"role"`
	ServiceAccountID types.String `tfsdk:"service_account_id"`
	LifetimeS        types.Int64  `tfsdk:"lifetime_s"`
	ID               types.String `tfsdk:"id"`
	Secret           types.String `tfsdk:"secret"`
}

func apiKeyEphemeral() ephemeral.EphemeralResource {
	return &transient[apiKeyEphemeralModel]{
		frame: frame{name: "api_key"},
		schema: schema.Schema{
			MarkdownDescription: "An API key for this run alone: revoked at its end, and by itself " +
				"after a while. For what else a run does with Freshet's API, with fewer rights.",
			Attributes: map[string]schema.Attribute{
				"name": passingNameAttribute(),
				"role": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: "Its role: " + quoted(keyRoles) + ", at most your own. Or give " +
						"`service_account_id`.",
					Validators: []validator.String{
						stringvalidator.OneOf(keyRoles...),
						stringvalidator.ExactlyOneOf(path.MatchRoot("service_account_id")),
					},
				},
				"service_account_id": schema.StringAttribute{
					Optional:            true,
					MarkdownDescription: "Service account whose role and role bindings it has.",
				},
				"lifetime_s": schema.Int64Attribute{
					Optional:            true,
					MarkdownDescription: "Seconds after which it ends by itself. Default: 3600.",
					Validators: []validator.Int64{
						int64validator.Between(keyLifetimeMin, keyLifetimeMax),
					},
				},
				"id":     givenOut("Id."),
				"secret": secretOut("The bearer token."),
			},
		},
		open: openAPIKey,
		end:  closeAPIKey,
	}
}

func openAPIKey(
	ctx context.Context, s *session, model *apiKeyEphemeralModel,
) (map[string]string, error) {
	lifetime := int64(keyLifetimeDefault)
	if seconds := optionalNumber(model.LifetimeS); seconds != nil {
		lifetime = *seconds
	}
	end := time.Now().Add(time.Duration(lifetime) * time.Second).UTC().Format(time.RFC3339)
	made, err := s.api.CreateAPIKey(ctx, api.NewAPIKey{
		Name:             passingName(model.Name.ValueString()),
		Role:             model.Role.ValueString(),
		ServiceAccountID: optionalText(model.ServiceAccountID),
		ExpiresAt:        &end,
	})
	if err != nil {
		return nil, err
	}
	model.ID = types.StringValue(made.ID)
	model.Secret = types.StringValue(made.Secret)
	return map[string]string{"id": made.ID}, nil
}

func closeAPIKey(ctx context.Context, s *session, handle map[string]string) error {
	return s.api.RevokeAPIKey(ctx, handle["id"])
}
