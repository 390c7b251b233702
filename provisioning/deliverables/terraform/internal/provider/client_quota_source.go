package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

type clientQuotasModel struct {
	ClusterID types.String `tfsdk:"cluster_id"`
	User      types.String `tfsdk:"user"`
	Quotas    []quotaFacts `tfsdk:"quotas"`
}

func clientQuotasSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"cluster_id": givenText("Id of the cluster."),
		"user":       filterText("Only those of this user, with and without a client id."),
		"quotas": shownList("The quotas. Null is no part of the entity, or no limit; an empty name "+
			"means all that have none of their own.", map[string]schema.Attribute{
			"user":                     shownText("User name."),
			"client_id":                shownText("Client id."),
			"ip":                       shownText("Address."),
			"produce_bytes_per_second": shownNumber("Bytes a second that they may produce."),
			"fetch_bytes_per_second":   shownNumber("Bytes a second that they may fetch."),
			"request_percentage":       shownRate("Percentage of the time of one thread."),
			"connections":              shownNumber("Connections at once."),
			"connections_per_second":   shownNumber("New connections a second."),
		}),
	}
	return newSource("client_quotas", "Quotas of a cluster's clients.", shows,
		func(ctx context.Context, s *session, model *clientQuotasModel) error {
			all, err := s.quotas.All(ctx, model.ClusterID.ValueString())
			model.Quotas = shownAll(all, func(quota api.ClientQuota) bool {
				return model.User.IsNull() || types.StringPointerValue(quota.User).Equal(model.User)
			}, shownBy[quotaFacts, api.ClientQuota])
			return err
		})
}
