package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

// shownAlert is an alert with its state, as data sources show it.
type shownAlert struct {
	alertModel
	State     types.String `tfsdk:"state"`
	ChangedAt types.String `tfsdk:"changed_at"`
	FiredAt   types.String `tfsdk:"fired_at"`
	Value     types.Int64  `tfsdk:"value"`
	Subject   types.String `tfsdk:"subject"`
}

func showAlert(alert api.Alert) shownAlert {
	shown := shownAlert{
		State:     types.StringValue(alert.State),
		ChangedAt: types.StringValue(alert.ChangedAt),
		FiredAt:   types.StringPointerValue(alert.FiredAt),
		Value:     types.Int64PointerValue((*int64)(alert.Value)),
		Subject:   types.StringValue(alert.Subject),
	}
	shown.show(alert)
	return shown
}

func alertAttributes() map[string]schema.Attribute {
	return shownRuleAttributes(map[string]schema.Attribute{
		"cluster_id": shownText("Id of the cluster."),
		"kind":       shownText("The figure: " + quoted(alertKinds) + "."),
		"group":      shownText("Consumer group; empty: whichever is worst."),
		"threshold":  shownNumber("It fires above: records, seconds, bytes or connections."),
		"for_s":      shownNumber("Seconds that it lasts before it fires, and before it is over."),
		"emails":     shownTexts("Who gets mails; empty: those who manage the organization."),
		"state":      shownText("`ok`, `pending` or `firing`."),
		"changed_at": shownText("Since when it is in this state, RFC 3339."),
		"fired_at":   shownText("When it last began to fire, RFC 3339; null: never yet."),
		"value":      shownNumber("The figure at the last look; null: not known."),
		"subject":    shownText("The group whose figure it is, or the topic with most of it."),
	})
}

func alertSource() datasource.DataSource {
	shows := alertAttributes()
	shows["cluster_id"] = givenText("Id of the cluster.")
	shows["name"] = givenText("Name of the alert.")
	return ruleSource("alert", "An alert of a cluster, with its state.", shows,
		func(ctx context.Context, s *session, model *shownAlert) (api.Alert, error) {
			return s.alertNamed(ctx, model.ClusterID.ValueString(), model.Name.ValueString())
		}, showAlert)
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
	ofCluster := func(model *alertsModel, alert api.Alert) bool {
		return fitsFilter(model.ClusterID, alert.ClusterID)
	}
	return rulesSource("alerts", "Alerts, with their states.", shows, alertList, ofCluster, showAlert,
		func(model *alertsModel, alerts []shownAlert) { model.Alerts = alerts })
}
