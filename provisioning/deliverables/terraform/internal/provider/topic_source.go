package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

type topicSourceModel struct {
	ClusterID        types.String `tfsdk:"cluster_id"`
	Name             types.String `tfsdk:"name"`
	ID               types.String `tfsdk:"id"`
	TopicID          types.String `tfsdk:"topic_id"`
	Partitions       types.Int64  `tfsdk:"partitions"`
	Configs          types.Map    `tfsdk:"configs"`
	EffectiveConfigs types.Map    `tfsdk:"effective_configs"`
	CreatedAt        types.String `tfsdk:"created_at"`
}

func topicSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"cluster_id":        givenText("Id of the cluster."),
		"name":              givenText("Name of the topic."),
		"id":                shownText("`cluster id/name`."),
		"topic_id":          shownText("Id, as Kafka writes it."),
		"partitions":        shownNumber("Number of partitions."),
		"configs":           shownMap("Configs that are set for the topic."),
		"effective_configs": shownMap("Every config, set or by default."),
		"created_at":        shownText("When it was made, RFC 3339."),
	}
	return newSource("topic", "A topic with the configs that hold for it.", shows,
		func(ctx context.Context, s *session, model *topicSourceModel) error {
			cluster, name := model.ClusterID.ValueString(), model.Name.ValueString()
			topic, err := s.api.Topic(ctx, cluster, name)
			model.ID = types.StringValue(cluster + "/" + name)
			model.TopicID = types.StringValue(topic.ID)
			model.Partitions = types.Int64Value(topic.Partitions)
			model.Configs = mapOf(topic.Configs)
			model.EffectiveConfigs = mapOf(effective(topic.ConfigDetails))
			model.CreatedAt = types.StringValue(topic.CreatedAt)
			return err
		})
}

// effective returns the values of all configs. A config without a value is left out.
func effective(details []api.ConfigDetail) map[string]string {
	values := map[string]string{}
	for _, detail := range details {
		if detail.Value != nil {
			values[detail.Name] = *detail.Value
		}
	}
	return values
}

type topicsModel struct {
	ClusterID    types.String `tfsdk:"cluster_id"`
	NameContains types.String `tfsdk:"name_contains"`
	Topics       []shownTopic `tfsdk:"topics"`
}

type shownTopic struct {
	Name       types.String `tfsdk:"name"`
	TopicID    types.String `tfsdk:"topic_id"`
	Partitions types.Int64  `tfsdk:"partitions"`
	Configs    types.Map    `tfsdk:"configs"`
	CreatedAt  types.String `tfsdk:"created_at"`
}

func topicsSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"cluster_id":    givenText("Id of the cluster."),
		"name_contains": filterText("Only those with this in their name."),
		"topics": shownList("The topics, by name.", map[string]schema.Attribute{
			"name":       shownText("Name."),
			"topic_id":   shownText("Id, as Kafka writes it."),
			"partitions": shownNumber("Number of partitions."),
			"configs":    shownMap("Configs that are set for the topic."),
			"created_at": shownText("When it was made, RFC 3339."),
		}),
	}
	return newSource("topics", "Topics of a cluster, but for Kafka's own.", shows,
		func(ctx context.Context, s *session, model *topicsModel) error {
			all, err := s.topics.All(ctx, model.ClusterID.ValueString())
			model.Topics = shownAll(all, func(topic api.Topic) bool {
				return strings.Contains(topic.Name, model.NameContains.ValueString())
			}, showTopic)
			return err
		})
}

func showTopic(topic api.Topic) shownTopic {
	return shownTopic{
		Name:       types.StringValue(topic.Name),
		TopicID:    types.StringValue(topic.ID),
		Partitions: types.Int64Value(topic.Partitions),
		Configs:    mapOf(topic.Configs),
		CreatedAt:  types.StringValue(topic.CreatedAt),
	}
}
