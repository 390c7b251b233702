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

// shownBudget is a budget with how it stands.
type shownBudget struct {
	budgetModel
	Month      types.String `tfsdk:"month"`
	State      types.String `tfsdk:"state"`
	SpentMinor types.Int64  `tfsdk:"spent_minor"`
}

func showBudget(found api.Budget) shownBudget {
	shown := shownBudget{
		Month:      types.StringValue(found.Month),
		State:      types.StringValue(found.State),
		SpentMinor: types.Int64Value(found.SpentMinor),
	}
	shown.show(found)
	return shown
}

func budgetAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":           shownText("Id."),
		"name":         shownText("Name."),
		"amount_minor": shownNumber("Amount of a month in minor units (cents)."),
		"thresholds": schema.SetAttribute{
			Computed: true, ElementType: types.Int64Type,
			MarkdownDescription: "Percentages of the amount at which a mail is sent.",
		},
		"action":      shownText("What happens when it is used up: `notify` or `suspend`."),
		"currency":    shownText("Currency, such as `USD`."),
		"month":       shownText("The month that was evaluated last, `YYYY-MM`."),
		"state":       shownText("How it stands in that month: `ok`, `warned` or `exceeded`."),
		"spent_minor": shownNumber("Spent of that month in minor units; some minutes old."),
		"created_at":  shownText("When it was set, RFC 3339."),
	}
}

func budgetSource() datasource.DataSource {
	shows := budgetAttributes()
	shows["name"] = givenText("Name of the budget.")
	return newSource("budget", "A budget and how it stands.", shows,
		func(ctx context.Context, s *session, model *shownBudget) error {
			found, err := s.budgetNamed(ctx, model.Name.ValueString())
			*model = showBudget(found)
			return err
		})
}

type budgetsModel struct {
	Budgets []shownBudget `tfsdk:"budgets"`
}

func budgetsSource() datasource.DataSource {
	shows := map[string]schema.Attribute{"budgets": shownList("The budgets.", budgetAttributes())}
	return newSource("budgets", "All budgets and how they stand.", shows,
		func(ctx context.Context, s *session, model *budgetsModel) error {
			all, err := s.budgets.All(ctx, organization)
			model.Budgets = shownAll(all, every, showBudget)
			return err
		})
}

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
	Quantity    types.Int64  `tfsdk:"quantity"`
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
		found := filterText(description + " One of " + quoted(values) + ".")
		found.Validators = []validator.String{stringvalidator.OneOf(values...)}
		return found
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
			"quantity":     shownNumber("How much."),
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
		Quantity:    types.Int64Value(item.Quantity),
		WindowStart: types.StringValue(item.WindowStart),
		WindowEnd:   types.StringValue(item.WindowEnd),
		Provisional: types.BoolValue(item.Provisional),
		ClusterID:   types.StringPointerValue(item.ClusterID),
		Topic:       types.StringPointerValue(item.Topic),
		Principal:   types.StringPointerValue(item.Principal),
	}
}
