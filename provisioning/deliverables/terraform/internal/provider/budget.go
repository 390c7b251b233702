package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

const (
	thresholdsMax = 10
	thresholdMax  = 1000
	throttleMin   = 1 << 16
	throttleMax   = 1 << 40
)

var budgetActions = []string{"notify", "throttle", "suspend"}

// budgetModel is a budget without its state. The resource and the data sources have it.
type budgetModel struct {
	ruleFacts
	AmountMinor types.Int64  `tfsdk:"amount_minor"`
	Thresholds  types.Set    `tfsdk:"thresholds"`
	Action      types.String `tfsdk:"action"`
	Throttle    types.Int64  `tfsdk:"throttle_bytes_per_s"`
	Currency    types.String `tfsdk:"currency"`
}

func budgetResource() resource.Resource {
	return ruleResource("budget", budgetSchema(), ruleCalls[budgetModel, api.Budget]{
		list: budgetList,
		create: func(ctx context.Context, client *api.Client, plan *budgetModel) (api.Budget, error) {
			return client.CreateBudget(ctx, plan.wish())
		},
		update: func(
			ctx context.Context, client *api.Client, id string, plan *budgetModel,
		) (api.Budget, error) {
			return client.UpdateBudget(ctx, id, plan.wish())
		},
		remove: func(ctx context.Context, client *api.Client, id string) error {
			return client.DeleteBudget(ctx, id)
		},
		identify: identifyBy("bud_", func(ctx context.Context, s *session, name string) (string, error) {
			budget, err := s.budgetNamed(ctx, name)
			return budget.ID, err
		}),
	})
}

func budgetList(s *session) listed[api.Budget] { return s.budgets }

func budgetSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A budget of calendar months (UTC, before taxes) for all of the " +
			"organization: mails at thresholds and, when it is used up, produce and fetch that " +
			"are refused (`suspend`) or slowed down (`throttle`).",
		Attributes: ruleAttributes("bud_5xw4mzn6yt2ba3k2jq7v", map[string]schema.Attribute{
			"amount_minor": schema.Int64Attribute{
				Required:            true,
				MarkdownDescription: "Amount of a month in minor units (cents).",
				Validators:          []validator.Int64{int64validator.AtLeast(1)},
			},
			"thresholds": schema.SetAttribute{
				Optional:    true,
				Computed:    true,
				ElementType: types.Int64Type,
				Default:     setdefault.StaticValue(numbersOf([]int64{50, 80, 100})),
				MarkdownDescription: "Percentages of the amount at which a mail is sent, once a " +
					"month. Default: `[50, 80, 100]`.",
				Validators: []validator.Set{
					setvalidator.SizeAtMost(thresholdsMax),
					setvalidator.ValueInt64sAre(int64validator.Between(1, thresholdMax)),
				},
			},
			"action": schema.StringAttribute{
				Optional: true,
				Computed: true,
				Default:  stringdefault.StaticString("notify"),
				MarkdownDescription: "What happens when it is used up: `notify` sends a mail, `suspend` " +
					"also has all clusters refuse produce and fetch, and `throttle` has them slow both " +
					"down. Traffic that slips past `suspend` is not billed; storage and partitions go " +
					"on being billed. Default: `notify`.",
				Validators: []validator.String{stringvalidator.OneOf(budgetActions...)},
			},
			"throttle_bytes_per_s": schema.Int64Attribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "Only with `throttle`: bytes a second of produce and fetch " +
					"together, for each cluster. Default: `1048576`.",
				Validators: []validator.Int64{int64validator.Between(throttleMin, throttleMax)},
			},
			"currency": computedText("Currency of the amount, such as `USD`."),
		}),
	}
}

func numbersOf(numbers []int64) types.Set {
	return setOf(types.Int64Type, numbers, types.Int64Value)
}

func numbersIn(set types.Set) []int64 {
	return itemsIn(set, types.Int64.ValueInt64)
}

func (m *budgetModel) wish() api.BudgetWish {
	thresholds := numbersIn(m.Thresholds)
	wish := api.BudgetWish{
		Name:        m.Name.ValueStringPointer(),
		AmountMinor: m.AmountMinor.ValueInt64Pointer(),
		Thresholds:  &thresholds,
		Action:      m.Action.ValueStringPointer(),
	}
	// Without a value in the configuration the service chooses one.
	if !m.Throttle.IsUnknown() {
		wish.ThrottleBytesPerS = m.Throttle.ValueInt64Pointer()
	}
	return wish
}

func (m *budgetModel) show(budget api.Budget) {
	m.ruleFacts = ruleFactsOf(budget.ID, budget.Name, budget.CreatedAt)
	m.AmountMinor = types.Int64Value(budget.AmountMinor)
	m.Thresholds = numbersOf(budget.Thresholds)
	m.Action = types.StringValue(budget.Action)
	m.Throttle = types.Int64PointerValue(budget.ThrottleBytesPerS)
	m.Currency = types.StringValue(budget.Currency)
}

func (s *session) budgetNamed(ctx context.Context, name string) (api.Budget, error) {
	return s.budgets.first(ctx, organization, name, func(budget api.Budget) bool {
		return budget.Name == name
	})
}
