package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

// shownAlert is an alert with how it stands.
type shownAlert struct {
	alertModel
	State     types.String `tfsdk:"state"`
	ChangedAt types.String `tfsdk:"changed_at"`
	FiredAt   types.String `tfsdk:"fired_at"`
	Value     types.Int64  `tfsdk:"value"`
	Subject   types.String `tfsdk:"subject"`
}

func showAlert(found api.Alert) shownAlert {
	shown := shownAlert{
		State:     types.StringValue(found.State),
		ChangedAt: types.StringValue(found.ChangedAt),
		FiredAt:   types.StringPointerValue(found.FiredAt),
		Value:     types.Int64PointerValue(found.Value),
		Subject:   types.StringValue(found.Subject),
	}
	shown.show(found)
	return shown
}

func alertAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":         shownText("Id."),
		"cluster_id": shownText("Id of the cluster."),
		"name":       shownText("Name."),
		"kind":       shownText("The figure: " + quoted(alertKinds) + "."),
		"group":      shownText("Consumer group; empty: whichever is worst."),
		"threshold":  shownNumber("It fires above: records, seconds, bytes or connections."),
		"for_s":      shownNumber("Seconds that it lasts before it fires, and before it is over."),
		"emails":     shownTexts("Who gets mails; empty: those who manage the organisation."),
		"state":      shownText("`ok` or `firing`."),
		"changed_at": shownText("Since when it is in this state, RFC 3339."),
		"fired_at":   shownText("When it last began to fire, RFC 3339; null: never yet."),
		"value":      shownNumber("The figure at the last look; null: not known."),
		"subject":    shownText("The group whose figure it is, of kinds of groups."),
		"created_at": shownText("When it was set, RFC 3339."),
	}
}

func alertSource() datasource.DataSource {
	shows := alertAttributes()
	shows["cluster_id"] = givenText("Id of the cluster.")
	shows["name"] = givenText("Name of the alert.")
	return newSource("alert", "An alert of a cluster and how it stands.", shows,
		func(ctx context.Context, s *session, model *shownAlert) error {
			cluster, name := model.ClusterID.ValueString(), model.Name.ValueString()
			found, err := s.alertNamed(ctx, cluster, name)
			*model = showAlert(found)
			return err
		})
}

type alertsModel struct {
	ClusterID types.String `tfsdk:"cluster_id"`
	Alerts    []shownAlert `tfsdk:"alerts"`
}

func alertsSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"cluster_id": filterText("Only those of this cluster."),
		"alerts":     shownList("The alerts, by id.", alertAttributes()),
	}
	return newSource("alerts", "Alerts and how they stand.", shows,
		func(ctx context.Context, s *session, model *alertsModel) error {
			all, err := s.alerts.All(ctx, organization)
			model.Alerts = shownAll(all, func(each api.Alert) bool {
				return fits(model.ClusterID, each.ClusterID)
			}, showAlert)
			return err
		})
}
