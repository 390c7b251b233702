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

	projects        *cache.Lists[api.Project]
	serviceAccounts *cache.Lists[api.ServiceAccount]
	roleBindings    *cache.Lists[api.RoleBinding]

	newTopics *batch.Batcher[api.NewTopic, api.Topic]
	newACLs   *batch.Batcher[api.NewACL, struct{}]
}

func newSession(client *api.Client) *session {
	s := &session{api: client}
	s.clusters = ofOrganization(client.Clusters, func(each api.Cluster) string { return each.ID })
	s.projects = ofOrganization(client.Projects, func(each api.Project) string { return each.ID })
	s.serviceAccounts = ofOrganization(client.ServiceAccounts,
		func(each api.ServiceAccount) string { return each.ID })
	s.roleBindings = ofOrganization(client.RoleBindings,
		func(each api.RoleBinding) string { return each.ID })
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

// ofOrganization is a cache of a list that is the organisation's.
func ofOrganization[T any](
	load func(context.Context) ([]T, error), key func(T) string,
) *cache.Lists[T] {
	return cache.New(
		func(ctx context.Context, _ string) ([]T, error) { return load(ctx) }, key, api.IsNotFound)
}

// identifyBy takes what an import names: an id, which begins with a prefix, or a name.
func identifyBy(
	prefix string, named func(context.Context, *session, string) (string, error),
) func(context.Context, *session, string) (map[string]string, error) {
	return func(ctx context.Context, s *session, id string) (map[string]string, error) {
		if strings.HasPrefix(id, prefix) {
			return map[string]string{"id": id}, nil
		}
		found, err := named(ctx, s, id)
		return map[string]string{"id": found}, err
	}
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
