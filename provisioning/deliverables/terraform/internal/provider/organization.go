package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	shownschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

const (
	organizationNameMax = 100
	networksMax         = 100
	// An import may name the key's organization by this word instead of its id.
	currentOrganization = "current"
)

// organizationModel is the settings of the organization that the API key belongs to.
type organizationModel struct {
	ID                types.String `tfsdk:"id"`
	Name              types.String `tfsdk:"name"`
	AllowedAddresses  types.Set    `tfsdk:"allowed_addresses"`
	TwoFactorRequired types.Bool   `tfsdk:"two_factor_required"`
}

func organizationSettingsResource() resource.Resource {
	return &managed[organizationModel]{
		frame:    frame{name: "organization_settings"},
		schema:   organizationSettingsSchema(),
		create:   createOrganizationSettings,
		read:     readOrganizationSettings,
		update:   updateOrganizationSettings,
		remove:   func(context.Context, *session, organizationModel) error { return nil },
		identify: identifyOrganization,

		planRemoval: warnOfKeptSettings,
	}
}

func organizationSettingsSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Settings of the organization that the API key is of; one such resource " +
			"is enough. What is left out stays as it is. What would lock out the key itself is refused. " +
			"Destroying it only ends the management, and the organization keeps its settings: a block " +
			"that moves to another module must not open the door meanwhile.",
		Attributes: map[string]schema.Attribute{
			"id": computedText("The organization's id, such as `org_5xw4mzn6yt2ba3k2jq7v`."),
			"name": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Name, as mails and invoices show it.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Validators: []validator.String{
					stringvalidator.LengthBetween(1, organizationNameMax),
				},
			},
			"allowed_addresses": schema.SetAttribute{
				Optional: true, Computed: true, ElementType: types.StringType,
				MarkdownDescription: "Networks that API keys and people may come from, in CIDR notation: " +
					"a single address as `192.0.2.7/32`. Empty: from anywhere. Kafka clients are not " +
					"meant.",
				PlanModifiers: []planmodifier.Set{setplanmodifier.UseStateForUnknown()},
				Validators: []validator.Set{
					setvalidator.SizeAtMost(networksMax), setvalidator.ValueStringsAre(network()),
				},
			},
			"two_factor_required": schema.BoolAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Whether people need a second factor to see anything of the " +
					"organization.",
				PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
			},
		},
	}
}

func warnOfKeptSettings(state organizationModel, to *diag.Diagnostics) {
	to.AddWarning("The organization keeps its settings", fmt.Sprintf("%s (%s) is managed by "+
		"Terraform no longer; allowed addresses and the second factor stay as they are.",
		state.Name.ValueString(), state.ID.ValueString()))
}

func (m *organizationModel) show(current api.Organization) {
	m.ID = types.StringValue(current.ID)
	m.Name = types.StringValue(current.Name)
	m.AllowedAddresses = textSetOf(current.AllowedAddresses)
	m.TwoFactorRequired = types.BoolValue(current.TwoFactorRequired)
}

// changeTo returns the change from m to a plan. Attributes that the plan does not know stay.
func (m *organizationModel) changeTo(plan *organizationModel) api.OrganizationChange {
	change := api.OrganizationChange{}
	if !plan.Name.Equal(m.Name) {
		change.Name = optionalText(plan.Name)
	}
	if !plan.AllowedAddresses.IsUnknown() && !plan.AllowedAddresses.Equal(m.AllowedAddresses) {
		networks := textsIn(plan.AllowedAddresses)
		change.AllowedAddresses = &networks
	}
	if !plan.TwoFactorRequired.IsUnknown() && !plan.TwoFactorRequired.Equal(m.TwoFactorRequired) {
		change.TwoFactorRequired = plan.TwoFactorRequired.ValueBoolPointer()
	}
	return change
}

func createOrganizationSettings(
	ctx context.Context, s *session, plan *organizationModel, _ organizationModel,
) (bool, error) {
	err := changeOrganization(ctx, s, plan, organizationModel{})
	return err == nil, err
}

func changeOrganization(
	ctx context.Context, s *session, plan *organizationModel, before organizationModel,
) error {
	current, err := s.api.UpdateOrganization(ctx, before.changeTo(plan))
	if err != nil {
		return err
	}
	s.organizations.Put(organization, current)
	plan.show(current)
	return nil
}

func readOrganizationSettings(ctx context.Context, s *session, state *organizationModel) error {
	current, err := s.organizations.get(ctx, organization, state.ID.ValueString())
	if err == nil {
		state.show(current)
	}
	return err
}

func updateOrganizationSettings(
	ctx context.Context, s *session, plan *organizationModel, state, _ organizationModel,
) error {
	return changeOrganization(ctx, s, plan, state)
}

// currentOrganization reads the organization of the API key, the only item of its list.
func (s *session) currentOrganization(ctx context.Context) (api.Organization, error) {
	return s.organizations.first(ctx, organization, currentOrganization, every)
}

// identifyOrganization reads the id of an import: the word current, or the id of the key's
// organization.
func identifyOrganization(
	ctx context.Context, s *session, id string,
) (map[string]string, error) {
	current, err := s.currentOrganization(ctx)
	if err == nil && id != currentOrganization && id != current.ID {
		err = absent("organization for this API key", id)
	}
	return map[string]string{"id": current.ID}, err
}

// shownOrganization is an organization as the data source shows it.
type shownOrganization struct {
	organizationModel
	AccountStatus types.String `tfsdk:"standing"`
	Verified      types.Bool   `tfsdk:"verified"`
	CreatedAt     types.String `tfsdk:"created_at"`
}

func organizationSource() datasource.DataSource {
	shows := map[string]shownschema.Attribute{
		"id":                  shownText("Id."),
		"name":                shownText("Name."),
		"allowed_addresses":   shownTexts("Networks that may come in; empty: from anywhere."),
		"two_factor_required": shownFlag("Whether people need a second factor."),
		"standing":            shownText("`active` or `suspended`."),
		"verified":            shownFlag("Whether an owner proved to own an address."),
		"created_at":          shownText("When it was made, RFC 3339."),
	}
	return newSource("organization", "The organization that the API key is of.", shows,
		func(ctx context.Context, s *session, model *shownOrganization) error {
			current, err := s.currentOrganization(ctx)
			model.show(current)
			model.AccountStatus = types.StringValue(current.AccountStatus)
			model.Verified = types.BoolValue(current.Verified)
			model.CreatedAt = types.StringValue(current.CreatedAt)
			return err
		})
}
