package provider

import (
	"context"
	"fmt"
	"strings"
	"time"

	"freshet/terraform/internal/api"
	"freshet/terraform/internal/batch"
	"freshet/terraform/internal/cache"
)

const (
	// Ten goroutines of one walk ask within much less.
	batchWindow = 25 * time.Millisecond
	// Lists that are the organisation's, not a cluster's, have one scope.
	organization = "the organisation"
)

// session is one run of the provider: a client, and what it has read and is about to write.
type session struct {
	api *api.Client

	clusters    *cache.Lists[api.Cluster]
	topics      *cache.Lists[api.Topic]
	acls        *cache.Lists[api.ACL]
	credentials *cache.Lists[api.Credential]

	newTopics *batch.Batcher[api.NewTopic, api.Topic]
	newACLs   *batch.Batcher[api.NewACL, struct{}]
}

func newSession(client *api.Client) *session {
	s := &session{api: client}
	s.clusters = cache.New(
		func(ctx context.Context, _ string) ([]api.Cluster, error) { return client.Clusters(ctx) },
		func(cluster api.Cluster) string { return cluster.ID }, api.IsNotFound)
	s.topics = cache.New(
		func(ctx context.Context, cluster string) ([]api.Topic, error) {
			return client.Topics(ctx, cluster, "basic")
		},
		func(topic api.Topic) string { return topic.Name }, api.IsNotFound)
	s.acls = cache.New(client.ACLs,
		func(entry api.ACL) string { return aclKey(entry.NewACL) }, api.IsNotFound)
	s.credentials = cache.New(client.Credentials,
		func(credential api.Credential) string { return credential.ID }, api.IsNotFound)
	s.newTopics = batch.New(batchWindow, api.TopicsAtOnce, s.sendTopics)
	s.newACLs = batch.New(batchWindow, api.TopicsAtOnce, s.sendACLs)
	return s
}

// clusterID gives a cluster's id for an id or a name.
func (s *session) clusterID(ctx context.Context, idOrName string) (string, error) {
	if strings.HasPrefix(idOrName, "cl_") {
		return idOrName, nil
	}
	found, err := s.clusterNamed(ctx, idOrName)
	return found.ID, err
}

func (s *session) clusterNamed(ctx context.Context, name string) (api.Cluster, error) {
	all, err := s.clusters.All(ctx, organization)
	if err != nil {
		return api.Cluster{}, err
	}
	for _, each := range all {
		if each.Name == name && each.DeletedAt == nil {
			return each, nil
		}
	}
	return api.Cluster{}, absent("cluster", name)
}

// absent is the error of what a list does not have.
func absent(kind, name string) error {
	return &api.Problem{
		Status: 404, Code: "not_found", Title: fmt.Sprintf("There is no %s %q", kind, name),
	}
}

// inCluster splits an import id "cluster/name". The cluster is named by its id or its name.
func (s *session) inCluster(ctx context.Context, id string) (cluster, name string, err error) {
	first, name, cut := strings.Cut(id, "/")
	if !cut || first == "" || name == "" {
		return "", "", fmt.Errorf("%q is not of the form cluster/name", id)
	}
	cluster, err = s.clusterID(ctx, first)
	return cluster, name, err
}
