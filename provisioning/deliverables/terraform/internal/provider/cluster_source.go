package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

// shownCluster is a cluster as data sources show it.
type shownCluster struct {
	ID                 types.String `tfsdk:"id"`
	Name               types.String `tfsdk:"name"`
	ProjectID          types.String `tfsdk:"project_id"`
	Region             types.String `tfsdk:"region"`
	Labels             types.Map    `tfsdk:"labels"`
	IdleTimeoutS       types.Int64  `tfsdk:"idle_timeout_s"`
	Scale              types.Object `tfsdk:"scale"`
	Schedules          types.List   `tfsdk:"schedules"`
	DeletionProtection types.Bool   `tfsdk:"deletion_protection"`
	BootstrapServers   types.String `tfsdk:"bootstrap_servers"`
	Endpoints          types.List   `tfsdk:"endpoints"`
	Phase              types.String `tfsdk:"phase"`
	CreatedAt          types.String `tfsdk:"created_at"`
}

func showCluster(cluster api.Cluster) shownCluster {
	return shownCluster{
		ID:                 types.StringValue(cluster.ID),
		Name:               types.StringValue(cluster.Name),
		ProjectID:          types.StringValue(cluster.ProjectID),
		Region:             types.StringValue(cluster.Region),
		Labels:             mapOf(cluster.Labels),
		IdleTimeoutS:       types.Int64Value(cluster.Spec.IdleTimeoutS),
		Scale:              scaleOf(cluster.Spec.Scale),
		Schedules:          schedulesOf(cluster.Spec.Schedules),
		DeletionProtection: types.BoolValue(cluster.DeletionProtection),
		BootstrapServers:   types.StringValue(cluster.BootstrapServers),
		Endpoints:          endpointsOf(cluster.Endpoints),
		Phase:              types.StringValue(cluster.Status.Phase),
		CreatedAt:          types.StringValue(cluster.CreatedAt),
	}
}

func clusterAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":             shownText("Id."),
		"name":           shownText("Name."),
		"project_id":     shownText("Project that it is in."),
		"region":         shownText("Region."),
		"labels":         shownMap("Labels."),
		"idle_timeout_s": shownNumber("Seconds without a client after which it sleeps."),
		"scale": schema.SingleNestedAttribute{
			Computed:            true,
			MarkdownDescription: "How many brokers it has.",
			Attributes: map[string]schema.Attribute{
				"min": shownNumber("`0`: it sleeps while nobody is connected; `1`: it never sleeps."),
				"max": shownNumber("Brokers when awake."),
			},
		},
		"schedules": shownList("When it does not sleep.", map[string]schema.Attribute{
			"days":      shownTexts("Those on which it begins, such as `mon`."),
			"start":     shownText("`HH:MM` in its time zone."),
			"end":       shownText("`HH:MM`; of the next day where it is not behind `start`."),
			"time_zone": shownText("Time zone, such as `Europe/Zurich`."),
		}),
		"deletion_protection": shownFlag("Whether deleting is refused."),
		"bootstrap_servers":   shownText("`host:port,…` for Kafka clients."),
		"endpoints": shownList("All ways for clients to connect.", map[string]schema.Attribute{
			"listener":          shownText("`SASL_PLAINTEXT` or `SASL_SSL`."),
			"bootstrap_servers": shownText("`host:port,…`"),
		}),
		"phase": shownText("What it does at this moment, such as `running` or `asleep`."),

		"created_at": shownText("When it was made, RFC 3339."),
	}
}

func clusterSource() datasource.DataSource {
	shows := clusterAttributes()
	shows["id"] = schema.StringAttribute{
		Optional: true, Computed: true, MarkdownDescription: "Id; or give `name`.",
	}
	shows["name"] = schema.StringAttribute{
		Optional: true, Computed: true, MarkdownDescription: "Name; or give `id`.",
	}
	return newSource("cluster", "A cluster, by its id or its name.", shows,
		func(ctx context.Context, s *session, model *shownCluster) error {
			id := model.ID.ValueString()
			if (id == "") == (model.Name.ValueString() == "") {
				return errors.New("give either id or name")
			}
			if id == "" {
				cluster, err := s.clusterNamed(ctx, model.Name.ValueString())
				*model = showCluster(cluster)
				return err
			}
			cluster, err := s.api.Cluster(ctx, id)
			if err == nil && cluster.DeletedAt != nil {
				err = absent("cluster", id)
			}
			*model = showCluster(cluster)
			return err
		})
}

type clustersModel struct {
	Clusters []shownCluster `tfsdk:"clusters"`
}

func clustersSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"clusters": shownList("The clusters, by id.", clusterAttributes()),
	}
	return newSource("clusters", "All clusters of the organization that are not deleted.", shows,
		func(ctx context.Context, s *session, model *clustersModel) error {
			all, err := s.clusters.All(ctx, organization)
			model.Clusters = shownAll(all, func(cluster api.Cluster) bool {
				return cluster.DeletedAt == nil
			}, showCluster)
			return err
		})
}

type regionsModel struct {
	Regions []regionModel `tfsdk:"regions"`
}

type regionModel struct {
	ID   types.String `tfsdk:"id"`
	Name types.String `tfsdk:"name"`
}

func regionsSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"regions": shownList("The regions.", map[string]schema.Attribute{
			"id":   shownText("Id, for a cluster's `region`."),
			"name": shownText("Name."),
		}),
	}
	return newSource("regions", "Regions that clusters can be created in.", shows,
		func(ctx context.Context, s *session, model *regionsModel) error {
			all, err := s.api.Regions(ctx)
			model.Regions = shownAll(all, every, func(region api.Region) regionModel {
				return regionModel{types.StringValue(region.ID), types.StringValue(region.Name)}
			})
			return err
		})
}
