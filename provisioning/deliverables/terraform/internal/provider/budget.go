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
)

var budgetActions = []string{"notify", "suspend"}

// budgetModel is what is chosen of a budget and what stays: both the resource and the data source
// have it.
type budgetModel struct {
	ID          types.String `tfsdk:"id"`
	Name        types.String `tfsdk:"name"`
	AmountMinor types.Int64  `tfsdk:"amount_minor"`
	Thresholds  types.Set    `tfsdk:"thresholds"`
	Action      types.String `tfsdk:"action"`
	Currency    types.String `tfsdk:"currency"`
	CreatedAt   types.String `tfsdk:"created_at"`
}

func budgetResource() resource.Resource {
	return &managed[budgetModel]{
		frame:  frame{name: "budget"},
		schema: budgetSchema(),
		create: createBudget,
		read:   readBudget,
		update: updateBudget,
		remove: removeBudget,
		identify: identifyBy("bud_", func(ctx context.Context, s *session, name string) (string, error) {
			found, err := s.budgetNamed(ctx, name)
			return found.ID, err
		}),
	}
}

func budgetSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A budget of calendar months (UTC, before taxes) for all of the " +
			"organisation: mails at thresholds and, with `suspend`, producers that are refused when " +
			"it is used up.",
		Attributes: map[string]schema.Attribute{
			"id": computedText("Id, such as `bud_5xw4mzn6yt2ba3k2jq7v`."),
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "Name, as mails show it.",
			},
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
					"also has all clusters refuse produce. Default: `notify`.",
				Validators: []validator.String{stringvalidator.OneOf(budgetActions...)},
			},
			"currency":   computedText("Currency of the amount, such as `USD`."),
			"created_at": computedText("When it was set, RFC 3339."),
		},
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
	return api.BudgetWish{
		Name:        m.Name.ValueStringPointer(),
		AmountMinor: m.AmountMinor.ValueInt64Pointer(),
		Thresholds:  &thresholds,
		Action:      m.Action.ValueStringPointer(),
	}
}

func (m *budgetModel) show(found api.Budget) {
	m.ID = types.StringValue(found.ID)
	m.Name = types.StringValue(found.Name)
	m.AmountMinor = types.Int64Value(found.AmountMinor)
	m.Thresholds = numbersOf(found.Thresholds)
	m.Action = types.StringValue(found.Action)
	m.Currency = types.StringValue(found.Currency)
	m.CreatedAt = types.StringValue(found.CreatedAt)
}

func createBudget(ctx context.Context, s *session, plan *budgetModel, _ budgetModel) (bool, error) {
	made, err := s.api.CreateBudget(ctx, plan.wish())
	if err != nil {
		return false, err
	}
	s.budgets.Put(organization, made)
	plan.show(made)
	return true, nil
}

func readBudget(ctx context.Context, s *session, state *budgetModel) error {
	found, err := s.budgets.get(ctx, organization, state.ID.ValueString())
	if err == nil {
		state.show(found)
	}
	return err
}

func updateBudget(ctx context.Context, s *session, plan *budgetModel, state, _ budgetModel) error {
	found, err := s.api.UpdateBudget(ctx, state.ID.ValueString(), plan.wish())
	if err != nil {
		return err
	}
	s.budgets.Put(organization, found)
	plan.show(found)
	return nil
}

func removeBudget(ctx context.Context, s *session, state budgetModel) error {
	id := state.ID.ValueString()
	return s.budgets.removed(organization, id, s.api.DeleteBudget(ctx, id))
}

func (s *session) budgetNamed(ctx context.Context, name string) (api.Budget, error) {
	return s.budgets.first(ctx, organization, name, func(each api.Budget) bool {
		return each.Name == name
	})
}
