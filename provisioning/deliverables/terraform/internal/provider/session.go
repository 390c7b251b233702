package provider

import (
	"context"
	"fmt"
	"strings"
	"time"

	"freshet/terraform/internal/api"
	"freshet/terraform/internal/batch"
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

	clusters    listed[api.Cluster]
	topics      listed[api.Topic]
	acls        listed[api.ACL]
	credentials listed[api.Credential]
	quotas      listed[api.ClientQuota]

	projects        listed[api.Project]
	serviceAccounts listed[api.ServiceAccount]
	roleBindings    listed[api.RoleBinding]
	budgets         listed[api.Budget]
	alerts          listed[api.Alert]

	// A list of one.
	organizations listed[api.Organization]
	// By address; of invitations those that may still be accepted.
	members     listed[api.Member]
	invitations listed[api.Invitation]

	newTopics *batch.Batcher[api.NewTopic, api.Topic]
	newACLs   *batch.Batcher[api.NewACL, struct{}]
}

func newSession(client *api.Client) *session {
	basicTopics := func(ctx context.Context, cluster string) ([]api.Topic, error) {
		return client.Topics(ctx, cluster, "basic")
	}
	s := &session{
		api: client,

		clusters: listedOnce("cluster", client.Clusters,
			func(each api.Cluster) string { return each.ID }),
		topics: listedBy("topic", basicTopics,
			func(each api.Topic) string { return each.Name }),
		acls: listedBy("entry", client.ACLs,
			func(each api.ACL) string { return aclKey(each.NewACL) }),
		credentials: listedBy("credential", client.Credentials,
			func(each api.Credential) string { return each.ID }),
		quotas: listedBy("quota", client.ClientQuotas,
			func(each api.ClientQuota) string { return quotaKey(each.QuotaEntity) }),

		projects: listedOnce("project", client.Projects,
			func(each api.Project) string { return each.ID }),
		serviceAccounts: listedOnce("service account", client.ServiceAccounts,
			func(each api.ServiceAccount) string { return each.ID }),
		roleBindings: listedOnce("role binding", client.RoleBindings,
			func(each api.RoleBinding) string { return each.ID }),
		budgets: listedOnce("budget", client.Budgets,
			func(each api.Budget) string { return each.ID }),
		alerts: listedOnce("alert", client.Alerts,
			func(each api.Alert) string { return each.ID }),

		organizations: listedOnce("organization", func(ctx context.Context) ([]api.Organization, error) {
			found, err := client.Organization(ctx)
			return []api.Organization{found}, err
		}, func(each api.Organization) string { return each.ID }),
		members: listedOnce("member", client.Members,
			func(each api.Member) string { return each.Email }),
		invitations: listedOnce("invitation", pendingInvitations(client),
			func(each api.Invitation) string { return each.Email }),
	}
	s.newTopics = batch.New(batchWindow, api.TopicsAtOnce, s.sendTopics)
	s.newACLs = batch.New(batchWindow, api.TopicsAtOnce, s.sendACLs)
	return s
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
	return s.clusters.first(ctx, organization, name, func(each api.Cluster) bool {
		return each.Name == name && each.DeletedAt == nil
	})
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
