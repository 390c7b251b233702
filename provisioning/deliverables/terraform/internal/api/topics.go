package api

import (
	"context"
	"fmt"
	"maps"
	"net/url"
)

// TopicStatus tells whether brokers serve a topic, or when they will.
type TopicStatus struct {
	PartitionsLed int64       `json:"partitions_led"`
	Conditions    []Condition `json:"conditions"`
}

// ConfigDetail is a config of a topic, with where its value comes from.
type ConfigDetail struct {
	Name          string  `json:"name"`
	Value         *string `json:"value"`
	Default       *string `json:"default"`
	Source        string  `json:"source"`
	IsDefault     bool    `json:"is_default"`
	Type          string  `json:"type"`
	Documentation string  `json:"documentation"`
}

// Topic of a cluster. Configs are those that are set; ConfigDetails are all of them, and only there
// where the full view was asked for.
type Topic struct {
	Name              string            `json:"name"`
	ID                string            `json:"id"`
	Partitions        int64             `json:"partitions"`
	ReplicationFactor int64             `json:"replication_factor"`
	Internal          bool              `json:"internal"`
	CreatedAt         string            `json:"created_at"`
	Configs           map[string]string `json:"configs"`
	ConfigDetails     []ConfigDetail    `json:"config_details"`
	Status            TopicStatus       `json:"status"`
}

// NewTopic is what a topic shall be. Without Partitions, the cluster's default.
type NewTopic struct {
	Name       string            `json:"name"`
	Partitions *int64            `json:"partitions,omitempty"`
	Configs    map[string]string `json:"configs,omitempty"`
}

// TopicsAtOnce is how many topics or ACL entries one request may create.
const TopicsAtOnce = 100

// Topics reads all topics but Kafka's own, with one request for each 2,000. Every topic of the full
// view is some 10 KB: the basic one has all that is set.
func (c *Client) Topics(ctx context.Context, cluster, view string) ([]Topic, error) {
	query := url.Values{"view": {view}}
	return list[Topic](ctx, c, at("clusters", cluster, "topics"), query, pageOfMetadata)
}

// Topic reads one, with the details of its configs.
func (c *Client) Topic(ctx context.Context, cluster, name string) (Topic, error) {
	var found Topic
	err := c.get(ctx, at("clusters", cluster, "topics", name), nil, &found)
	return found, err
}

// CreateTopics makes at most TopicsAtOnce topics and gives them in order. All are checked before
// the first is made.
//
// Topics are no rows of the service's database: one whose request was lost half-way is there when
// the request is repeated. Such a one is taken for ours if it is as it was wanted.
func (c *Client) CreateTopics(
	ctx context.Context, cluster string, wanted []NewTopic,
) ([]Topic, error) {
	body := map[string][]NewTopic{"items": wanted}
	var made page[Topic]
	repeated, err := c.post(ctx, at("clusters", cluster, "topics"), body, &made)
	if err == nil && len(made.Items) == len(wanted) {
		return made.Items, nil
	}
	if err == nil {
		return nil, fmt.Errorf("%d topics were asked for, %d came", len(wanted), len(made.Items))
	}
	if !repeated || !HasCode(err, "name_taken") {
		return nil, err
	}
	found := make([]Topic, len(wanted))
	for i, each := range wanted {
		found[i], err = c.createOrAdopt(ctx, cluster, each)
		if err != nil {
			return nil, fmt.Errorf("topic %s: %w", each.Name, err)
		}
	}
	return found, nil
}

func (c *Client) createOrAdopt(
	ctx context.Context, cluster string, wanted NewTopic,
) (Topic, error) {
	found, err := c.Topic(ctx, cluster, wanted.Name)
	if IsNotFound(err) {
		made, err := c.CreateTopics(ctx, cluster, []NewTopic{wanted})
		if err != nil {
			return Topic{}, err
		}
		return made[0], nil
	}
	if err != nil {
		return Topic{}, err
	}
	sameCount := wanted.Partitions == nil || *wanted.Partitions == found.Partitions
	if !sameCount || !maps.Equal(wanted.Configs, found.Configs) {
		return Topic{}, &Problem{
			Status: 409, Code: "name_taken", Title: "The name is taken",
			Detail: "a topic of this name is there, and is not as it is wanted",
		}
	}
	return found, nil
}

// AlterTopic sets configs; nil goes back to the default, what is left out stays.
func (c *Client) AlterTopic(
	ctx context.Context, cluster, name string, configs map[string]*string,
) (Topic, error) {
	var found Topic
	body := map[string]map[string]*string{"configs": configs}
	err := c.patch(ctx, at("clusters", cluster, "topics", name), body, &found)
	return found, err
}

// AddPartitions raises a topic's number of partitions to count. Repeating it changes nothing.
func (c *Client) AddPartitions(
	ctx context.Context, cluster, name string, count int64,
) (Topic, error) {
	var found Topic
	body := map[string]int64{"count": count}
	repeated, err := c.post(ctx, at("clusters", cluster, "topics", name, "partitions"), body, &found)
	if err != nil && repeated && IsRefused(err) {
		there, readErr := c.Topic(ctx, cluster, name)
		if readErr == nil && there.Partitions == count {
			return there, nil
		}
	}
	return found, err
}

// DeleteTopic deletes a topic with its records.
func (c *Client) DeleteTopic(ctx context.Context, cluster, name string) error {
	return c.remove(ctx, at("clusters", cluster, "topics", name), nil, nil)
}
