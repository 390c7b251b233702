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
	// How long brokers that run may take to serve new topics. After it clients wait for them.
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
	made, err := s.newTopics.Do(ctx, plan.ClusterID.ValueString(), api.NewTopic{
		Name:       plan.Name.ValueString(),
		Partitions: optionalNumber(plan.Partitions),
		Configs:    textsOf(plan.Configs),
	})
	if err != nil {
		return false, err
	}
	plan.show(made)
	return true, nil
}

func readTopic(ctx context.Context, s *session, state *topicModel) error {
	cluster, name := state.ClusterID.ValueString(), state.Name.ValueString()
	found, err := s.topics.get(ctx, cluster, name)
	if err != nil {
		return err
	}
	state.Configs = mapUnlessNone(found.Configs, state.Configs)
	state.show(found)
	return nil
}

// show fills in what is computed.
func (m *topicModel) show(found api.Topic) {
	m.ID = types.StringValue(m.ClusterID.ValueString() + "/" + found.Name)
	m.Name = types.StringValue(found.Name)
	m.Partitions = types.Int64Value(found.Partitions)
	m.TopicID = types.StringValue(found.ID)
	m.CreatedAt = types.StringValue(found.CreatedAt)
}

func updateTopic(ctx context.Context, s *session, plan *topicModel, state, _ topicModel) error {
	cluster, name := plan.ClusterID.ValueString(), plan.Name.ValueString()
	if count := plan.Partitions; !count.Equal(state.Partitions) && !count.IsUnknown() {
		found, err := s.api.AddPartitions(ctx, cluster, name, count.ValueInt64())
		if err != nil {
			return err
		}
		s.topics.Put(cluster, found)
		plan.show(found)
	}
	changes := configChanges(textsOf(state.Configs), textsOf(plan.Configs))
	if len(changes) > 0 {
		found, err := s.api.AlterTopic(ctx, cluster, name, changes)
		if err != nil {
			return err
		}
		s.topics.Put(cluster, found)
		plan.show(found)
	}
	return nil
}

// configChanges is what turns configs into others: nil takes one away.
func configChanges(before, after map[string]string) map[string]*string {
	changes := map[string]*string{}
	for name := range before {
		if _, stays := after[name]; !stays {
			changes[name] = nil
		}
	}
	for name, value := range after {
		if old, there := before[name]; !there || old != value {
			changes[name] = &value
		}
	}
	return changes
}

func removeTopic(ctx context.Context, s *session, state topicModel) error {
	cluster, name := state.ClusterID.ValueString(), state.Name.ValueString()
	return s.topics.removed(cluster, name, s.api.DeleteTopic(ctx, cluster, name))
}

// identifyTopic takes cluster/name, the cluster by its id or its name.
func identifyTopic(ctx context.Context, s *session, id string) (map[string]string, error) {
	cluster, name, err := s.inCluster(ctx, id)
	return map[string]string{"cluster_id": cluster, "name": name}, err
}

func refuseFewerPartitions(state topicModel, plan *topicModel, to *diag.Diagnostics) {
	replaced := !plan.ClusterID.Equal(state.ClusterID) || !plan.Name.Equal(state.Name)
	if replaced || plan.Partitions.IsUnknown() || plan.Partitions.IsNull() {
		return
	}
	has, wanted := state.Partitions.ValueInt64(), plan.Partitions.ValueInt64()
	if wanted < has {
		to.AddAttributeError(path.Root("partitions"), "A topic cannot lose partitions",
			fmt.Sprintf("Topic %q has %d partitions, %d are wanted. Kafka can add partitions, not "+
				"remove them: records would be lost. Keep %d, or make a topic of another name and "+
				"move what reads and writes.",
				state.Name.ValueString(), has, wanted, has))
	}
}

func (s *session) sendTopics(
	ctx context.Context, cluster string, wanted []api.NewTopic,
) []batch.Result[api.Topic] {
	send := func(wanted []api.NewTopic) ([]api.Topic, error) {
		made, err := s.api.CreateTopics(ctx, cluster, wanted)
		if err != nil {
			return nil, err
		}
		made = s.waitServed(ctx, cluster, made)
		s.topics.Put(cluster, made...)
		return made, nil
	}
	return batch.AllOrEach(wanted, send, api.IsRefused)
}

// waitServed waits until brokers serve topics, where any run. A cluster that sleeps serves them
// when it wakes up.
func (s *session) waitServed(ctx context.Context, cluster string, made []api.Topic) []api.Topic {
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	for !allServed(made) {
		found, err := s.api.Cluster(ctx, cluster)
		if err != nil || found.Status.Phase != "running" {
			return made
		}
		there, err := s.api.Topics(ctx, cluster, "basic")
		if err != nil {
			return made
		}
		made = asTheyAre(made, there)
		if allServed(made) {
			return made
		}
		select {
		case <-ctx.Done():
			return made
		case <-time.After(servedPause):
		}
	}
	return made
}

func allServed(topics []api.Topic) bool {
	for _, each := range topics {
		if each.Status.PartitionsLed < each.Partitions {
			return false
		}
	}
	return true
}

// asTheyAre gives topics as a list has them; one that is not in it is as it was.
func asTheyAre(made, there []api.Topic) []api.Topic {
	byName := make(map[string]api.Topic, len(there))
	for _, each := range there {
		byName[each.Name] = each
	}
	found := make([]api.Topic, len(made))
	for i, each := range made {
		found[i] = each
		if now, known := byName[each.Name]; known {
			found[i] = now
		}
	}
	return found
}
