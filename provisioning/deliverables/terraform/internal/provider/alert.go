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

// alertModel is an alert without its state. The resource and the data sources have it.
type alertModel struct {
	ruleFacts
	ClusterID types.String `tfsdk:"cluster_id"`
	Kind      types.String `tfsdk:"kind"`
	Group     types.String `tfsdk:"group"`
	Threshold types.Int64  `tfsdk:"threshold"`
	ForS      types.Int64  `tfsdk:"for_s"`
	Emails    types.Set    `tfsdk:"emails"`
}

func alertResource() resource.Resource {
	return ruleResource("alert", alertSchema(), ruleCalls[alertModel, api.Alert]{
		list: alertList,
		create: func(ctx context.Context, client *api.Client, plan *alertModel) (api.Alert, error) {
			return client.CreateAlert(ctx, api.NewAlert{
				ClusterID: plan.ClusterID.ValueString(), Kind: plan.Kind.ValueString(),
				AlertWish: plan.wish(),
			})
		},
		update: func(
			ctx context.Context, client *api.Client, id string, plan *alertModel,
		) (api.Alert, error) {
			return client.UpdateAlert(ctx, id, plan.wish())
		},
		remove: func(ctx context.Context, client *api.Client, id string) error {
			return client.DeleteAlert(ctx, id)
		},
		identify: identifyAlert,
	})
}

func alertList(s *session) listed[api.Alert] { return s.alerts }

func alertSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A mail when a figure of a cluster stays beyond a threshold, and one when " +
			"it is over. It is looked at once a minute and wakes no cluster.",
		Attributes: ruleAttributes("alr_5xw4mzn6yt2ba3k2jq7v", map[string]schema.Attribute{
			"cluster_id": inACluster(),
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
					"the organization.",
				Validators: []validator.Set{
					setvalidator.SizeAtMost(alertMailsMax), setvalidator.ValueStringsAre(mailAddress()),
				},
			},
		}, stringvalidator.LengthBetween(1, alertNameMax)),
	}
}

// groupOfLag refuses a consumer group in an alert whose kind is not about groups.
type groupOfLag struct{}

func (groupOfLag) Description(context.Context) string {
	return "only alerts of lag have a group"
}

func (v groupOfLag) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v groupOfLag) ValidateString(
	ctx context.Context, request validator.StringRequest, answer *validator.StringResponse,
) {
	var kind types.String
	answer.Diagnostics.Append(request.Config.GetAttribute(ctx, path.Root("kind"), &kind)...)
	known := request.ConfigValue.ValueString() != "" && kind.ValueString() != ""
	if known && !slices.Contains(alertKindsOfGroups, kind.ValueString()) {
		answer.Diagnostics.AddAttributeError(request.Path, "An alert without groups",
			fmt.Sprintf("%s, and %s does not.", v.Description(ctx), kind.ValueString()))
	}
}

func (m *alertModel) wish() api.AlertWish {
	emails := textsIn(m.Emails)
	return api.AlertWish{
		Name:      m.Name.ValueStringPointer(),
		Group:     m.Group.ValueStringPointer(),
		Threshold: (*api.Int64)(m.Threshold.ValueInt64Pointer()),
		ForS:      m.ForS.ValueInt64Pointer(),
		Emails:    &emails,
	}
}

func (m *alertModel) show(alert api.Alert) {
	m.ruleFacts = ruleFactsOf(alert.ID, alert.Name, alert.CreatedAt)
	m.ClusterID = types.StringValue(alert.ClusterID)
	m.Kind = types.StringValue(alert.Kind)
	m.Group = types.StringValue(alert.Group)
	m.Threshold = types.Int64Value(int64(alert.Threshold))
	m.ForS = types.Int64Value(alert.ForS)
	m.Emails = textSetOf(alert.Emails)
}

// identifyAlert reads the id of an import: the alert's id, or cluster/name.
func identifyAlert(ctx context.Context, s *session, id string) (map[string]string, error) {
	if strings.HasPrefix(id, "alr_") {
		return map[string]string{"id": id}, nil
	}
	cluster, name, err := s.inCluster(ctx, id)
	if err != nil {
		return nil, err
	}
	alert, err := s.alertNamed(ctx, cluster, name)
	return map[string]string{"id": alert.ID}, err
}

// alertNamed finds the alert of a cluster that has a name. It fails where several have it: names
// need not be unique.
func (s *session) alertNamed(ctx context.Context, cluster, name string) (api.Alert, error) {
	all, err := s.alerts.All(ctx, organization)
	if err != nil {
		return api.Alert{}, err
	}
	all = slices.DeleteFunc(all, func(alert api.Alert) bool {
		return alert.ClusterID != cluster || alert.Name != name
	})
	switch len(all) {
	case 0:
		return api.Alert{}, absent("alert", name)
	case 1:
		return all[0], nil
	}
	return api.Alert{}, errors.New("several alerts have this name: use the id of one")
}
