package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
	"freshet/terraform/internal/batch"
)

const (
	topicNameMax = 249
	// How long a create waits until running brokers serve new topics. After that clients wait.
	servedTimeout = time.Minute
	servedPause   = 200 * time.Millisecond
)

type topicModel struct {
	ID         types.String `tfsdk:"id"`
	ClusterID  types.String `tfsdk:"cluster_id"`
	Name       types.String `tfsdk:"name"`
	Partitions types.Int64  `tfsdk:"partitions"`
	Configs    types.Map    `tfsdk:"configs"`
	TopicID    types.String `tfsdk:"topic_id"`
	CreatedAt  types.String `tfsdk:"created_at"`
}

func topicResource() resource.Resource {
	return &managed[topicModel]{
		frame:      frame{name: "topic"},
		schema:     topicSchema(),
		create:     createTopic,
		read:       readTopic,
		update:     updateTopic,
		remove:     removeTopic,
		identify:   identifyTopic,
		planChange: refuseFewerPartitions,
	}
}

func topicSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A topic. Making one never wakes a cluster that sleeps; on one that " +
			"runs, brokers serve it when it is made.",
		Attributes: map[string]schema.Attribute{
			"id":         computedText("`cluster id/name`."),
			"cluster_id": inACluster(),
			"name": fixedText("Name.", stringvalidator.LengthBetween(1, topicNameMax),
				stringvalidator.RegexMatches(topicNamePattern, "letters, digits, `.`, `_` and `-`"),
				stringvalidator.NoneOf(".", "..")),
			"partitions": schema.Int64Attribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "Number of partitions. It can grow, never shrink. Without it, " +
					"the cluster's default.",
				Validators:    []validator.Int64{int64validator.AtLeast(1)},
				PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"configs": schema.MapAttribute{
				Optional:    true,
				ElementType: types.StringType,
				MarkdownDescription: "Configs by Kafka's names, as text (`\"retention.ms\" = " +
					"\"604800000\"`). All that are set for the topic are managed: one that another " +
					"tool sets shows as a difference, and defaults never do.",
			},
			"topic_id":   computedText("Id, as Kafka writes it."),
			"created_at": computedText("When it was made, RFC 3339."),
		},
	}
}

func createTopic(ctx context.Context, s *session, plan *topicModel, _ topicModel) (bool, error) {
	topic, err := s.newTopics.Do(ctx, plan.ClusterID.ValueString(), api.NewTopic{
		Name:       plan.Name.ValueString(),
		Partitions: optionalNumber(plan.Partitions),
		Configs:    textsOf(plan.Configs),
	})
	if err != nil {
		return false, err
	}
	plan.show(topic)
	return true, nil
}

func readTopic(ctx context.Context, s *session, state *topicModel) error {
	cluster, name := state.ClusterID.ValueString(), state.Name.ValueString()
	topic, err := s.topics.get(ctx, cluster, name)
	if err != nil {
		return err
	}
	state.Configs = mapUnlessNone(topic.Configs, state.Configs)
	state.show(topic)
	return nil
}

// show fills in the attributes that the service decides.
func (m *topicModel) show(topic api.Topic) {
	m.ID = types.StringValue(m.ClusterID.ValueString() + "/" + topic.Name)
	m.Name = types.StringValue(topic.Name)
	m.Partitions = types.Int64Value(topic.Partitions)
	m.TopicID = types.StringValue(topic.ID)
	m.CreatedAt = types.StringValue(topic.CreatedAt)
}

func updateTopic(ctx context.Context, s *session, plan *topicModel, state, _ topicModel) error {
	cluster, name := plan.ClusterID.ValueString(), plan.Name.ValueString()
	if count := plan.Partitions; !count.Equal(state.Partitions) && !count.IsUnknown() {
		topic, err := s.api.AddPartitions(ctx, cluster, name, count.ValueInt64())
		if err != nil {
			return err
		}
		s.topics.Put(cluster, topic)
		plan.show(topic)
	}
	changes := configChanges(textsOf(state.Configs), textsOf(plan.Configs))
	if len(changes) > 0 {
		topic, err := s.api.AlterTopic(ctx, cluster, name, changes)
		if err != nil {
			return err
		}
		s.topics.Put(cluster, topic)
		plan.show(topic)
	}
	return nil
}

// configChanges returns what turns the configs before into those after; nil unsets a config.
func configChanges(before, after map[string]string) map[string]*string {
	changes := map[string]*string{}
	for name := range before {
		if _, stays := after[name]; !stays {
			changes[name] = nil
		}
	}
	for name, value := range after {
		if old, exists := before[name]; !exists || old != value {
			changes[name] = &value
		}
	}
	return changes
}

func removeTopic(ctx context.Context, s *session, state topicModel) error {
	cluster, name := state.ClusterID.ValueString(), state.Name.ValueString()
	return s.topics.removed(cluster, name, s.api.DeleteTopic(ctx, cluster, name))
}

// identifyTopic reads the id of an import: cluster/name, with the cluster's id or its name.
func identifyTopic(ctx context.Context, s *session, id string) (map[string]string, error) {
	cluster, name, err := s.inCluster(ctx, id)
	return map[string]string{"cluster_id": cluster, "name": name}, err
}

func refuseFewerPartitions(state topicModel, plan *topicModel, to *diag.Diagnostics) {
	replaced := !plan.ClusterID.Equal(state.ClusterID) || !plan.Name.Equal(state.Name)
	if replaced || plan.Partitions.IsUnknown() || plan.Partitions.IsNull() {
		return
	}
	before, after := state.Partitions.ValueInt64(), plan.Partitions.ValueInt64()
	if after < before {
		to.AddAttributeError(path.Root("partitions"), "A topic cannot lose partitions",
			fmt.Sprintf("Topic %q has %d partitions, %d are wanted. Kafka can add partitions, not "+
				"remove them: records would be lost. Keep %d, or make a topic with another name and "+
				"move producers and consumers to it.",
				state.Name.ValueString(), before, after, before))
	}
}

// sendTopics creates topics with one request; where that is refused, each with one of its own.
func (s *session) sendTopics(
	ctx context.Context, cluster string, newTopics []api.NewTopic,
) []batch.Result[api.Topic] {
	send := func(newTopics []api.NewTopic) ([]api.Topic, error) {
		topics, err := s.api.CreateTopics(ctx, cluster, newTopics)
		if err != nil {
			return nil, err
		}
		topics = s.waitServed(ctx, cluster, topics)
		s.topics.Put(cluster, topics...)
		return topics, nil
	}
	return batch.AllOrEach(newTopics, send, api.IsRefused)
}

// waitServed waits until the brokers of a cluster that runs serve topics, for at most
// servedTimeout, and returns the topics as they are then. A cluster that sleeps serves them when it
// wakes up.
func (s *session) waitServed(ctx context.Context, cluster string, topics []api.Topic) []api.Topic {
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	for !allServed(topics) {
		current, err := s.api.Cluster(ctx, cluster)
		if err != nil || current.Status.Phase != "running" {
			return topics
		}
		list, err := s.api.Topics(ctx, cluster, "basic")
		if err != nil {
			return topics
		}
		topics = refreshed(topics, list)
		if allServed(topics) {
			return topics
		}
		select {
		case <-ctx.Done():
			return topics
		case <-time.After(servedPause):
		}
	}
	return topics
}

func allServed(topics []api.Topic) bool {
	for _, topic := range topics {
		if topic.Status.PartitionsLed < topic.Partitions {
			return false
		}
	}
	return true
}

// refreshed returns topics as a newer list has them. A topic that is not in the list stays as it
// was.
func refreshed(topics, list []api.Topic) []api.Topic {
	byName := make(map[string]api.Topic, len(list))
	for _, topic := range list {
		byName[topic.Name] = topic
	}
	newer := make([]api.Topic, len(topics))
	for i, topic := range topics {
		newer[i] = topic
		if current, known := byName[topic.Name]; known {
			newer[i] = current
		}
	}
	return newer
}
