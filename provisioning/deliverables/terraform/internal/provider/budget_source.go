package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

// shownBudget is a budget with its state, as data sources show it.
type shownBudget struct {
	budgetModel
	Month      types.String `tfsdk:"month"`
	State      types.String `tfsdk:"state"`
	SpentMinor types.Int64  `tfsdk:"spent_minor"`
}

func showBudget(budget api.Budget) shownBudget {
	shown := shownBudget{
		Month:      types.StringValue(budget.Month),
		State:      types.StringValue(budget.State),
		SpentMinor: types.Int64Value(budget.SpentMinor),
	}
	shown.show(budget)
	return shown
}

func budgetAttributes() map[string]schema.Attribute {
	return shownRuleAttributes(map[string]schema.Attribute{
		"amount_minor": shownNumber("Amount of a month in minor units (cents)."),
		"thresholds": schema.SetAttribute{
			Computed: true, ElementType: types.Int64Type,
			MarkdownDescription: "Percentages of the amount at which a mail is sent.",
		},
		"action":               shownText("When it is used up: `notify`, `throttle` or `suspend`."),
		"throttle_bytes_per_s": shownNumber("Bytes a second of a cluster, with `throttle`."),
		"currency":             shownText("Currency, such as `USD`."),
		"month":                shownText("The month that was evaluated last, `YYYY-MM`."),
		"state":                shownText("Its state in that month: `ok`, `warned` or `exceeded`."),
		"spent_minor":          shownNumber("Spent of that month in minor units; some minutes old."),
	})
}

func budgetSource() datasource.DataSource {
	shows := budgetAttributes()
	shows["name"] = givenText("Name of the budget.")
	return ruleSource("budget", "A budget, with its state.", shows,
		func(ctx context.Context, s *session, model *shownBudget) (api.Budget, error) {
			return s.budgetNamed(ctx, model.Name.ValueString())
		}, showBudget)
}

type budgetsModel struct {
	Budgets []shownBudget `tfsdk:"budgets"`
}

func budgetsSource() datasource.DataSource {
	shows := map[string]schema.Attribute{"budgets": shownList("The budgets.", budgetAttributes())}
	all := func(*budgetsModel, api.Budget) bool { return true }
	return rulesSource("budgets", "All budgets, with their states.", shows, budgetList, all,
		showBudget, func(model *budgetsModel, budgets []shownBudget) { model.Budgets = budgets })
}
