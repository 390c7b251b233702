package provider

import (
	"context"
	"net/url"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

type usageModel struct {
	ClusterID   types.String `tfsdk:"cluster_id"`
	From        types.String `tfsdk:"from"`
	To          types.String `tfsdk:"to"`
	Granularity types.String `tfsdk:"granularity"`
	GroupBy     types.String `tfsdk:"group_by"`
	Items       []shownUsage `tfsdk:"items"`
}

type shownUsage struct {
	Meter       types.String `tfsdk:"meter"`
	Unit        types.String `tfsdk:"unit"`
	Quantity    types.Number `tfsdk:"quantity"`
	WindowStart types.String `tfsdk:"window_start"`
	WindowEnd   types.String `tfsdk:"window_end"`
	Provisional types.Bool   `tfsdk:"provisional"`
	ClusterID   types.String `tfsdk:"cluster_id"`
	Topic       types.String `tfsdk:"topic"`
	Principal   types.String `tfsdk:"principal"`
}

func usageSource() datasource.DataSource {
	return newSource("usage", "What was used, by the meters that invoices count.", usageAttributes(),
		func(ctx context.Context, s *session, model *usageModel) error {
			query := url.Values{}
			for name, value := range map[string]types.String{
				"cluster_id": model.ClusterID, "from": model.From, "to": model.To,
				"granularity": model.Granularity, "group_by": model.GroupBy,
			} {
				if text := optionalText(value); text != nil {
					query.Set(name, *text)
				}
			}
			all, err := s.api.Usage(ctx, query)
			model.Items = shownAll(all, every, showUsage)
			return err
		})
}

func usageAttributes() map[string]schema.Attribute {
	oneOf := func(description string, values ...string) schema.StringAttribute {
		filter := filterText(description + " One of " + quoted(values) + ".")
		filter.Validators = []validator.String{stringvalidator.OneOf(values...)}
		return filter
	}
	return map[string]schema.Attribute{
		"cluster_id":  filterText("Only of this cluster."),
		"from":        filterText("Windows that begin at or after this time, RFC 3339."),
		"to":          filterText("Windows that begin before this time, RFC 3339. Default: now."),
		"granularity": oneOf("Length of a window.", "minute", "hour", "day", "month"),
		"group_by":    oneOf("What is summed.", "none", "cluster", "topic", "principal", "meter"),
		"items": shownList("What was used.", map[string]schema.Attribute{
			"meter":        shownText("What was metered, such as `ingress_bytes`."),
			"unit":         shownText("Unit of the quantity, such as `byte`."),
			"quantity":     shownWhole("How much."),
			"window_start": shownText("Begin of the window, RFC 3339."),
			"window_end":   shownText("The first moment behind it, RFC 3339."),
			"provisional":  shownFlag("Whether it may still grow."),
			"cluster_id":   shownText("Of which cluster; null in a sum over clusters."),
			"topic":        shownText("Of which topic; null in a sum over topics."),
			"principal":    shownText("By whom; null in a sum over principals."),
		}),
	}
}

func showUsage(item api.UsageItem) shownUsage {
	return shownUsage{
		Meter:       types.StringValue(item.Meter),
		Unit:        types.StringValue(item.Unit),
		Quantity:    types.NumberValue(item.Quantity.Float()),
		WindowStart: types.StringValue(item.WindowStart),
		WindowEnd:   types.StringValue(item.WindowEnd),
		Provisional: types.BoolValue(item.Provisional),
		ClusterID:   types.StringPointerValue(item.ClusterID),
		Topic:       types.StringPointerValue(item.Topic),
		Principal:   types.StringPointerValue(item.Principal),
	}
}
