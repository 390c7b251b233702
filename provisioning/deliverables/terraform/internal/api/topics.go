package api

import (
	"context"
	"fmt"
	"maps"
	"net/url"
)

// TopicStatus says whether brokers serve a topic, or when they will.
type TopicStatus struct {
	PartitionsLed int64       `json:"partitions_led"`
	Conditions    []Condition `json:"conditions"`
}

// ConfigDetail is a config of a topic, with the source of its value.
type ConfigDetail struct {
	Name          string  `json:"name"`
	Value         *string `json:"value"`
	Default       *string `json:"default"`
	Source        string  `json:"source"`
	IsDefault     bool    `json:"is_default"`
	Type          string  `json:"type"`
	Documentation string  `json:"documentation"`
}

// Topic is a topic of a cluster. Configs are those that are set for the topic; ConfigDetails are
// all of them, in the full view only.
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

// NewTopic is a topic to be created. Without Partitions it gets the cluster's default.
type NewTopic struct {
	Name       string            `json:"name"`
	Partitions *int64            `json:"partitions,omitempty"`
	Configs    map[string]string `json:"configs,omitempty"`
}

// TopicsAtOnce is how many topics or ACL entries one request may create.
const TopicsAtOnce = 100

// Topics reads all topics but Kafka's internal ones, with one request for each 2,000. A topic takes
// some 10 KB in the view "full"; the view "basic" has the configs that are set.
func (c *Client) Topics(ctx context.Context, cluster, view string) ([]Topic, error) {
	query := url.Values{"view": {view}}
	return list[Topic](ctx, c, at("clusters", cluster, "topics"), query, pageOfMetadata)
}

// Topic reads a topic with the details of its configs.
func (c *Client) Topic(ctx context.Context, cluster, name string) (Topic, error) {
	var topic Topic
	err := c.get(ctx, at("clusters", cluster, "topics", name), nil, &topic)
	return topic, err
}

// CreateTopics creates at most TopicsAtOnce topics and returns them in order. All are checked
// before the first is created.
//
// A topic has no row in the service's database, so the service cannot know that a repeated request
// is the same: it finds topics that the request created before its answer was lost. Such a topic
// counts as created by this call where it has the partitions and configs of the new one.
func (c *Client) CreateTopics(
	ctx context.Context, cluster string, newTopics []NewTopic,
) ([]Topic, error) {
	body := map[string][]NewTopic{"items": newTopics}
	var created page[Topic]
	repeated, err := c.post(ctx, at("clusters", cluster, "topics"), body, &created)
	count := len(created.Items)
	if err == nil && count == len(newTopics) {
		return created.Items, nil
	}
	if err == nil {
		return nil, fmt.Errorf("the service created %d topics instead of %d", count, len(newTopics))
	}
	if !repeated || !HasCode(err, "name_taken") {
		return nil, err
	}
	topics := make([]Topic, len(newTopics))
	for i, newTopic := range newTopics {
		topics[i], err = c.createOrAdopt(ctx, cluster, newTopic)
		if err != nil {
			return nil, fmt.Errorf("topic %s: %w", newTopic.Name, err)
		}
	}
	return topics, nil
}

// createOrAdopt creates a topic, or returns the existing one where it is the same.
func (c *Client) createOrAdopt(
	ctx context.Context, cluster string, newTopic NewTopic,
) (Topic, error) {
	existing, err := c.Topic(ctx, cluster, newTopic.Name)
	if IsNotFound(err) {
		created, err := c.CreateTopics(ctx, cluster, []NewTopic{newTopic})
		if err != nil {
			return Topic{}, err
		}
		return created[0], nil
	}
	if err != nil {
		return Topic{}, err
	}
	sameCount := newTopic.Partitions == nil || *newTopic.Partitions == existing.Partitions
	if !sameCount || !maps.Equal(newTopic.Configs, existing.Configs) {
		return Topic{}, &Problem{
			Status: 409, Code: "name_taken", Title: "The name is taken",
			Detail: "a topic with this name exists and has other partitions or configs",
		}
	}
	return existing, nil
}

// AlterTopic sets configs of a topic. nil goes back to the default; configs that are left out stay.
func (c *Client) AlterTopic(
	ctx context.Context, cluster, name string, configs map[string]*string,
) (Topic, error) {
	var topic Topic
	body := map[string]map[string]*string{"configs": configs}
	err := c.patch(ctx, at("clusters", cluster, "topics", name), body, &topic)
	return topic, err
}

// AddPartitions raises a topic's number of partitions to count. Repeating it changes nothing.
func (c *Client) AddPartitions(
	ctx context.Context, cluster, name string, count int64,
) (Topic, error) {
	var topic Topic
	body := map[string]int64{"count": count}
	repeated, err := c.post(ctx, at("clusters", cluster, "topics", name, "partitions"), body, &topic)
	if err != nil && repeated && IsRefused(err) {
		current, readErr := c.Topic(ctx, cluster, name)
		if readErr == nil && current.Partitions == count {
			return current, nil
		}
	}
	return topic, err
}

// DeleteTopic deletes a topic with its records.
func (c *Client) DeleteTopic(ctx context.Context, cluster, name string) error {
	return c.remove(ctx, at("clusters", cluster, "topics", name), nil, nil)
}
