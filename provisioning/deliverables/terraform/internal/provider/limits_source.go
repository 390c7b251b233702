package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

type limitsModel struct {
	ClusterID types.String `tfsdk:"cluster_id"`
	Limits    []shownLimit `tfsdk:"limits"`
}

type shownLimit struct {
	Name     types.String `tfsdk:"name"`
	Scope    types.String `tfsdk:"scope"`
	Limit    types.Int64  `tfsdk:"limit"`
	Used     types.Int64  `tfsdk:"used"`
	Unit     types.String `tfsdk:"unit"`
	Effect   types.String `tfsdk:"effect"`
	Raisable types.Bool   `tfsdk:"raisable"`
}

func limitsSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"cluster_id": filterText("Shows this cluster's own values, and what it uses."),
		"limits": shownList("The limits.", map[string]schema.Attribute{
			"name":     shownText("Name."),
			"scope":    shownText("What it holds for, such as `organization` or `cluster`."),
			"limit":    shownNumber("How much at most."),
			"used":     shownNumber("How much is used; null where it is not known."),
			"unit":     shownText("Unit of both."),
			"effect":   shownText("What happens at it."),
			"raisable": shownFlag("Whether more can be asked for."),
		}),
	}
	return newSource("limits", "Published limits, what of them is used, and what happens at each. "+
		"More can be asked for in the console.", shows,
		func(ctx context.Context, s *session, model *limitsModel) error {
			all, err := s.api.Limits(ctx, model.ClusterID.ValueString())
			model.Limits = shownAll(all, every, showLimit)
			return err
		})
}

func showLimit(limit api.Limit) shownLimit {
	return shownLimit{
		Name:     types.StringValue(limit.Name),
		Scope:    types.StringValue(limit.Scope),
		Limit:    types.Int64Value(limit.Limit),
		Used:     types.Int64PointerValue(limit.Used),
		Unit:     types.StringValue(limit.Unit),
		Effect:   types.StringValue(limit.Effect),
		Raisable: types.BoolValue(limit.Raisable),
	}
}
