package provider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"freshet/terraform/internal/api"
)

// fake is as much of the service as these tests need, in memory: an organization and one cluster
// with topics, credentials and quotas. It uses the types of internal/api, which another test
// compares with the API's description.
type fake struct {
	fakeAccounts
	mu          sync.Mutex
	cluster     api.Cluster
	topics      map[string]api.Topic
	credentials map[string]api.Credential
	quotas      map[string]api.ClientQuota
	passwords   map[string]string
	asked       []string // "METHOD path", without /api/v1
}

const clusterID = "cl_a"

func newFake(t *testing.T) (*fake, string) {
	t.Helper()
	service := &fake{
		fakeAccounts: newFakeAccounts(),
		cluster: api.Cluster{
			ID: clusterID, Name: "orders", Region: "local", DeletionProtection: true,
			Spec: api.ClusterSpec{IdleTimeoutS: 300, Scale: api.Scale{Max: 1}},
		},
		topics:      map[string]api.Topic{},
		credentials: map[string]api.Credential{},
		quotas:      map[string]api.ClientQuota{},
		passwords:   map[string]string{},
	}
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	return service, server.URL
}

func (f *fake) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.TrimPrefix(request.URL.Path, "/api/v1")
	f.asked = append(f.asked, request.Method+" "+path)
	below := strings.TrimPrefix(path, "/clusters/"+clusterID)
	parts := strings.Split(strings.Trim(below, "/"), "/")
	switch {
	case path == "/clusters":
		writeJSON(answer, http.StatusOK, items(map[string]api.Cluster{clusterID: f.cluster}))
	case f.serveAccounts(answer, request, strings.Split(path, "/")[1:]):
	case below == path:
		refuse(answer, http.StatusNotFound, "not_found", "")
	case below == "":
		writeJSON(answer, http.StatusOK, f.cluster)
	case parts[0] == "topics":
		f.serveTopics(answer, request, parts[1:])
	case parts[0] == "credentials":
		f.serveCredentials(answer, request, parts[1:])
	case parts[0] == "quotas":
		f.serveQuotas(answer, request)
	}
}

func (f *fake) serveQuotas(answer http.ResponseWriter, request *http.Request) {
	switch request.Method {
	case http.MethodGet:
		writeJSON(answer, http.StatusOK, items(f.quotas))
	case http.MethodPut:
		var wish api.QuotaWish
		_ = json.NewDecoder(request.Body).Decode(&wish)
		key := quotaKey(wish.QuotaEntity)
		f.quotas[key] = api.ClientQuota{
			ID: "qta_" + key, QuotaEntity: wish.QuotaEntity, QuotaValues: wish.QuotaValues,
		}
		writeJSON(answer, http.StatusOK, f.quotas[key])
	case http.MethodDelete:
		of := api.QuotaEntity{}
		for name, part := range map[string]**string{
			"user": &of.User, "client_id": &of.ClientID, "ip": &of.IP,
		} {
			if query := request.URL.Query(); query.Has(name) {
				value := query.Get(name)
				*part = &value
			}
		}
		delete(f.quotas, quotaKey(of))
		answer.WriteHeader(http.StatusNoContent)
	}
}

func (f *fake) serveTopics(answer http.ResponseWriter, request *http.Request, parts []string) {
	switch {
	case request.Method == http.MethodGet:
		writeJSON(answer, http.StatusOK, items(f.topics))
	case request.Method == http.MethodPost && len(parts) == 0:
		f.createTopics(answer, request)
	case request.Method == http.MethodPost:
		var change struct{ Count int64 }
		_ = json.NewDecoder(request.Body).Decode(&change)
		topic := f.topics[parts[0]]
		topic.Partitions, topic.Status.PartitionsLed = change.Count, change.Count
		f.topics[parts[0]] = topic
		writeJSON(answer, http.StatusOK, topic)
	case request.Method == http.MethodPatch:
		var change struct{ Configs map[string]*string }
		_ = json.NewDecoder(request.Body).Decode(&change)
		for name, value := range change.Configs {
			delete(f.topics[parts[0]].Configs, name)
			if value != nil {
				f.topics[parts[0]].Configs[name] = *value
			}
		}
		writeJSON(answer, http.StatusOK, f.topics[parts[0]])
	case request.Method == http.MethodDelete:
		delete(f.topics, parts[0])
		answer.WriteHeader(http.StatusNoContent)
	}
}

// createTopics makes all or none. A name that begins with "bad" is refused.
func (f *fake) createTopics(answer http.ResponseWriter, request *http.Request) {
	var body struct{ Items []api.NewTopic }
	_ = json.NewDecoder(request.Body).Decode(&body)
	for place, newTopic := range body.Items {
		if strings.HasPrefix(newTopic.Name, "bad") {
			pointer := fmt.Sprintf("/items/%d/configs/retention.ms", place)
			refuse(answer, http.StatusUnprocessableEntity, "validation_failed", pointer)
			return
		}
	}
	list := []api.Topic{}
	for _, newTopic := range body.Items {
		count := int64(3)
		if newTopic.Partitions != nil {
			count = *newTopic.Partitions
		}
		topic := api.Topic{
			Name: newTopic.Name, ID: "id of " + newTopic.Name, Partitions: count,
			Configs: newTopic.Configs, Status: api.TopicStatus{PartitionsLed: count},
		}
		if topic.Configs == nil {
			topic.Configs = map[string]string{}
		}
		f.topics[newTopic.Name] = topic
		list = append(list, topic)
	}
	writeJSON(answer, http.StatusCreated, map[string]any{"items": list})
}

func (f *fake) serveCredentials(
	answer http.ResponseWriter, request *http.Request, parts []string,
) {
	switch {
	case request.Method == http.MethodGet:
		writeJSON(answer, http.StatusOK, items(f.credentials))
	case request.Method == http.MethodPost:
		var newCredential api.NewCredential
		_ = json.NewDecoder(request.Body).Decode(&newCredential)
		id := fmt.Sprintf("cred_%d", len(f.credentials))
		created := api.Credential{
			ID: id, Name: newCredential.Name, Username: id, Principal: "User:" + id,
			Role:      newCredential.Role,
			Mechanism: newCredential.Mechanism,
		}
		if len(parts) == 1 {
			before := f.credentials[strings.TrimSuffix(parts[0], ":rotate")]
			created.Replaces = &before.ID
			created.Name, created.Role, created.Mechanism = before.Name, before.Role, before.Mechanism
			before.ReplacedBy = &id
			f.credentials[before.ID] = before
		}
		f.credentials[id] = created
		f.passwords[id] = *newCredential.Password
		writeJSON(answer, http.StatusCreated, created)
	case request.Method == http.MethodDelete:
		delete(f.credentials, parts[0])
		answer.WriteHeader(http.StatusNoContent)
	}
}

func items[T any](all map[string]T) map[string][]T {
	page := map[string][]T{"items": {}}
	for _, item := range all {
		page["items"] = append(page["items"], item)
	}
	return page
}

func writeJSON(answer http.ResponseWriter, status int, what any) {
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(status)
	_ = json.NewEncoder(answer).Encode(what)
}

func refuse(answer http.ResponseWriter, status int, code, pointer string) {
	problem := api.Problem{Status: status, Code: code, Title: "No"}
	if pointer != "" {
		problem.Errors = []api.FieldError{{Pointer: pointer, Detail: "It is wrong."}}
	}
	writeJSON(answer, status, problem)
}
