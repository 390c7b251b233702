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
	// The ten goroutines of one walk ask within a much shorter time.
	batchWindow = 25 * time.Millisecond
	// The only scope of lists that belong to the organization and not to a cluster.
	organization = "the organization"
)

// session is one run of the provider: a client, the lists that it has read, and the batches that it
// is about to send.
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

	// The organization of the API key is its only item.
	organizations listed[api.Organization]
	// Both by address. Invitations are only those that may still be accepted.
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
			func(cluster api.Cluster) string { return cluster.ID }),
		topics: listedBy("topic", basicTopics,
			func(topic api.Topic) string { return topic.Name }),
		acls: listedBy("entry", client.ACLs,
			func(entry api.ACL) string { return aclKey(entry.NewACL) }),
		credentials: listedBy("credential", client.Credentials,
			func(credential api.Credential) string { return credential.ID }),
		quotas: listedBy("quota", client.ClientQuotas,
			func(quota api.ClientQuota) string { return quotaKey(quota.QuotaEntity) }),

		projects: listedOnce("project", client.Projects,
			func(project api.Project) string { return project.ID }),
		serviceAccounts: listedOnce("service account", client.ServiceAccounts,
			func(account api.ServiceAccount) string { return account.ID }),
		roleBindings: listedOnce("role binding", client.RoleBindings,
			func(binding api.RoleBinding) string { return binding.ID }),
		budgets: listedOnce("budget", client.Budgets,
			func(budget api.Budget) string { return budget.ID }),
		alerts: listedOnce("alert", client.Alerts,
			func(alert api.Alert) string { return alert.ID }),

		organizations: listedOnce("organization", func(ctx context.Context) ([]api.Organization, error) {
			current, err := client.Organization(ctx)
			return []api.Organization{current}, err
		}, func(current api.Organization) string { return current.ID }),
		members: listedOnce("member", client.Members,
			func(member api.Member) string { return member.Email }),
		invitations: listedOnce("invitation", pendingInvitations(client),
			func(invitation api.Invitation) string { return invitation.Email }),
	}
	s.newTopics = batch.New(batchWindow, api.TopicsAtOnce, s.sendTopics)
	s.newACLs = batch.New(batchWindow, api.TopicsAtOnce, s.sendACLs)
	return s
}

// identifyBy returns a function that reads the id of an import: an id, which begins with prefix, or
// a name, whose id find looks up.
func identifyBy(
	prefix string, find func(context.Context, *session, string) (string, error),
) func(context.Context, *session, string) (map[string]string, error) {
	return func(ctx context.Context, s *session, id string) (map[string]string, error) {
		if strings.HasPrefix(id, prefix) {
			return map[string]string{"id": id}, nil
		}
		foundID, err := find(ctx, s, id)
		return map[string]string{"id": foundID}, err
	}
}

// clusterID returns the id of the cluster with an id or a name.
func (s *session) clusterID(ctx context.Context, idOrName string) (string, error) {
	if strings.HasPrefix(idOrName, "cl_") {
		return idOrName, nil
	}
	cluster, err := s.clusterNamed(ctx, idOrName)
	return cluster.ID, err
}

// clusterNamed finds the cluster with a name that is not deleted.
func (s *session) clusterNamed(ctx context.Context, name string) (api.Cluster, error) {
	return s.clusters.first(ctx, organization, name, func(cluster api.Cluster) bool {
		return cluster.Name == name && cluster.DeletedAt == nil
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
