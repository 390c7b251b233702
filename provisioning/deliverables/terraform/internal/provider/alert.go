package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

const (
	alertNameMax  = 100
	alertGroupMax = 255
	alertMailsMax = 20
	alertForS     = 300
	alertForSMax  = 24 * 3600
	alertMost     = 1 << 62
)

var (
	alertKindsOfGroups = []string{"group_lag", "group_lag_seconds"}
	alertKinds         = slices.Concat(alertKindsOfGroups,
		[]string{"storage_bytes", "storage_growth_bytes", "connections"})
)

// alertModel is what is chosen of an alert and what stays: the resource and the data sources have
// it.
type alertModel struct {
	ID        types.String `tfsdk:"id"`
	ClusterID types.String `tfsdk:"cluster_id"`
	Name      types.String `tfsdk:"name"`
	Kind      types.String `tfsdk:"kind"`
	Group     types.String `tfsdk:"group"`
	Threshold types.Int64  `tfsdk:"threshold"`
	ForS      types.Int64  `tfsdk:"for_s"`
	Emails    types.Set    `tfsdk:"emails"`
	CreatedAt types.String `tfsdk:"created_at"`
}

func alertResource() resource.Resource {
	return &managed[alertModel]{
		frame:    frame{name: "alert"},
		schema:   alertSchema(),
		create:   createAlert,
		read:     readAlert,
		update:   updateAlert,
		remove:   removeAlert,
		identify: identifyAlert,
	}
}

func alertSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A mail when a figure of a cluster stays beyond a threshold, and one when " +
			"it is over. It is looked at once a minute and wakes no cluster.",
		Attributes: map[string]schema.Attribute{
			"id":         computedText("Id, such as `alr_5xw4mzn6yt2ba3k2jq7v`."),
			"cluster_id": inACluster(),
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Name, as mails show it.",
				Validators:          []validator.String{stringvalidator.LengthBetween(1, alertNameMax)},
			},
			"kind": fixedText("The figure: "+quoted(alertKinds)+". Those of groups are of the keeper's "+
				"last look at them, the others of what is metered.", stringvalidator.OneOf(alertKinds...)),
			"group": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(""),
				MarkdownDescription: "Consumer group, of " + quoted(alertKindsOfGroups) + ". Default: " +
					"whichever is worst.",
				Validators: []validator.String{
					stringvalidator.LengthAtMost(alertGroupMax), groupOfLag{},
				},
			},
			"threshold": schema.Int64Attribute{
				Required: true,
				MarkdownDescription: "It fires above: records of `group_lag`, seconds of " +
					"`group_lag_seconds`, bytes of storage and of its growth in 24 hours, connections.",
				Validators: []validator.Int64{int64validator.Between(0, alertMost)},
			},
			"for_s": schema.Int64Attribute{
				Optional: true, Computed: true, Default: int64default.StaticInt64(alertForS),
				MarkdownDescription: "Seconds that the figure stays beyond it before it fires, and below " +
					"before it is over. Default: `300`.",
				Validators: []validator.Int64{int64validator.Between(0, alertForSMax)},
			},
			"emails": schema.SetAttribute{
				Optional: true, Computed: true, ElementType: types.StringType,
				Default: setdefault.StaticValue(textSetOf(nil)),
				MarkdownDescription: "Addresses of members who get the mails. Default: those who manage " +
					"the organisation.",
				Validators: []validator.Set{
					setvalidator.SizeAtMost(alertMailsMax), setvalidator.ValueStringsAre(mailAddress()),
				},
			},
			"created_at": computedText("When it was set, RFC 3339."),
		},
	}
}

// groupOfLag refuses a group where the figure is none of groups.
type groupOfLag struct{}

func (groupOfLag) Description(context.Context) string {
	return "only alerts of lag are of a group"
}

func (v groupOfLag) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v groupOfLag) ValidateString(
	ctx context.Context, request validator.StringRequest, answer *validator.StringResponse,
) {
	var kind types.String
	answer.Diagnostics.Append(request.Config.GetAttribute(ctx, path.Root("kind"), &kind)...)
	given := request.ConfigValue.ValueString() != "" && kind.ValueString() != ""
	if given && !slices.Contains(alertKindsOfGroups, kind.ValueString()) {
		answer.Diagnostics.AddAttributeError(request.Path, "An alert without groups",
			fmt.Sprintf("%s: %s is not.", v.Description(ctx), kind.ValueString()))
	}
}

func (m *alertModel) wish() api.AlertWish {
	emails := textsIn(m.Emails)
	return api.AlertWish{
		Name:      m.Name.ValueStringPointer(),
		Group:     m.Group.ValueStringPointer(),
		Threshold: m.Threshold.ValueInt64Pointer(),
		ForS:      m.ForS.ValueInt64Pointer(),
		Emails:    &emails,
	}
}

func (m *alertModel) show(found api.Alert) {
	m.ID = types.StringValue(found.ID)
	m.ClusterID = types.StringValue(found.ClusterID)
	m.Name = types.StringValue(found.Name)
	m.Kind = types.StringValue(found.Kind)
	m.Group = types.StringValue(found.Group)
	m.Threshold = types.Int64Value(found.Threshold)
	m.ForS = types.Int64Value(found.ForS)
	m.Emails = textSetOf(found.Emails)
	m.CreatedAt = types.StringValue(found.CreatedAt)
}

func createAlert(ctx context.Context, s *session, plan *alertModel, _ alertModel) (bool, error) {
	made, err := s.api.CreateAlert(ctx, api.NewAlert{
		ClusterID: plan.ClusterID.ValueString(), Kind: plan.Kind.ValueString(), AlertWish: plan.wish(),
	})
	if err != nil {
		return false, err
	}
	s.alerts.Put(organization, made)
	plan.show(made)
	return true, nil
}

func readAlert(ctx context.Context, s *session, state *alertModel) error {
	found, err := s.alerts.get(ctx, organization, state.ID.ValueString())
	if err == nil {
		state.show(found)
	}
	return err
}

func updateAlert(ctx context.Context, s *session, plan *alertModel, state, _ alertModel) error {
	found, err := s.api.UpdateAlert(ctx, state.ID.ValueString(), plan.wish())
	if err != nil {
		return err
	}
	s.alerts.Put(organization, found)
	plan.show(found)
	return nil
}

func removeAlert(ctx context.Context, s *session, state alertModel) error {
	id := state.ID.ValueString()
	return s.alerts.removed(organization, id, s.api.DeleteAlert(ctx, id))
}

// identifyAlert takes an id, or cluster/name.
func identifyAlert(ctx context.Context, s *session, id string) (map[string]string, error) {
	if strings.HasPrefix(id, "alr_") {
		return map[string]string{"id": id}, nil
	}
	cluster, name, err := s.inCluster(ctx, id)
	if err != nil {
		return nil, err
	}
	found, err := s.alertNamed(ctx, cluster, name)
	return map[string]string{"id": found.ID}, err
}

// alertNamed finds the one of a cluster that has a name. Names need not be unique.
func (s *session) alertNamed(ctx context.Context, cluster, name string) (api.Alert, error) {
	all, err := s.alerts.All(ctx, organization)
	if err != nil {
		return api.Alert{}, err
	}
	all = slices.DeleteFunc(all, func(each api.Alert) bool {
		return each.ClusterID != cluster || each.Name != name
	})
	switch len(all) {
	case 0:
		return api.Alert{}, absent("alert", name)
	case 1:
		return all[0], nil
	}
	return api.Alert{}, errors.New("several alerts have this name: name the one by its id")
}
