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

// fake is as much of the service as these tests need: an organisation, one cluster with topics,
// credentials and quotas, in memory, in the shapes of internal/api, which another test holds to the
// API's description.
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
	found := &fake{
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
	server := httptest.NewServer(found)
	t.Cleanup(server.Close)
	return found, server.URL
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
		tell(answer, http.StatusOK, items(map[string]api.Cluster{clusterID: f.cluster}))
	case f.serveAccounts(answer, request, strings.Split(path, "/")[1:]):
	case below == path:
		refuse(answer, http.StatusNotFound, "not_found", "")
	case below == "":
		tell(answer, http.StatusOK, f.cluster)
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
		tell(answer, http.StatusOK, items(f.quotas))
	case http.MethodPut:
		var wanted api.QuotaWish
		_ = json.NewDecoder(request.Body).Decode(&wanted)
		key := quotaKey(wanted.QuotaEntity)
		f.quotas[key] = api.ClientQuota{
			ID: "qta_" + key, QuotaEntity: wanted.QuotaEntity, QuotaValues: wanted.QuotaValues,
		}
		tell(answer, http.StatusOK, f.quotas[key])
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
		tell(answer, http.StatusOK, items(f.topics))
	case request.Method == http.MethodPost && len(parts) == 0:
		f.createTopics(answer, request)
	case request.Method == http.MethodPost:
		var wanted struct{ Count int64 }
		_ = json.NewDecoder(request.Body).Decode(&wanted)
		topic := f.topics[parts[0]]
		topic.Partitions, topic.Status.PartitionsLed = wanted.Count, wanted.Count
		f.topics[parts[0]] = topic
		tell(answer, http.StatusOK, topic)
	case request.Method == http.MethodPatch:
		var wanted struct{ Configs map[string]*string }
		_ = json.NewDecoder(request.Body).Decode(&wanted)
		for name, value := range wanted.Configs {
			delete(f.topics[parts[0]].Configs, name)
			if value != nil {
				f.topics[parts[0]].Configs[name] = *value
			}
		}
		tell(answer, http.StatusOK, f.topics[parts[0]])
	case request.Method == http.MethodDelete:
		delete(f.topics, parts[0])
		answer.WriteHeader(http.StatusNoContent)
	}
}

// createTopics makes all or none. A name that begins with "bad" is refused.
func (f *fake) createTopics(answer http.ResponseWriter, request *http.Request) {
	var wanted struct{ Items []api.NewTopic }
	_ = json.NewDecoder(request.Body).Decode(&wanted)
	for place, each := range wanted.Items {
		if strings.HasPrefix(each.Name, "bad") {
			pointer := fmt.Sprintf("/items/%d/configs/retention.ms", place)
			refuse(answer, http.StatusUnprocessableEntity, "validation_failed", pointer)
			return
		}
	}
	made := map[string]any{}
	list := []api.Topic{}
	for _, each := range wanted.Items {
		count := int64(3)
		if each.Partitions != nil {
			count = *each.Partitions
		}
		topic := api.Topic{
			Name: each.Name, ID: "id of " + each.Name, Partitions: count, Configs: each.Configs,
			Status: api.TopicStatus{PartitionsLed: count},
		}
		if topic.Configs == nil {
			topic.Configs = map[string]string{}
		}
		f.topics[each.Name] = topic
		list = append(list, topic)
	}
	made["items"] = list
	tell(answer, http.StatusCreated, made)
}

func (f *fake) serveCredentials(
	answer http.ResponseWriter, request *http.Request, parts []string,
) {
	switch {
	case request.Method == http.MethodGet:
		tell(answer, http.StatusOK, items(f.credentials))
	case request.Method == http.MethodPost:
		var wanted api.NewCredential
		_ = json.NewDecoder(request.Body).Decode(&wanted)
		id := fmt.Sprintf("cred_%d", len(f.credentials))
		made := api.Credential{
			ID: id, Name: wanted.Name, Username: id, Principal: "User:" + id, Role: wanted.Role,
			Mechanism: wanted.Mechanism,
		}
		if len(parts) == 1 {
			before := f.credentials[strings.TrimSuffix(parts[0], ":rotate")]
			made.Replaces = &before.ID
			made.Name, made.Role, made.Mechanism = before.Name, before.Role, before.Mechanism
			before.ReplacedBy = &id
			f.credentials[before.ID] = before
		}
		f.credentials[id] = made
		f.passwords[id] = *wanted.Password
		tell(answer, http.StatusCreated, made)
	case request.Method == http.MethodDelete:
		delete(f.credentials, parts[0])
		answer.WriteHeader(http.StatusNoContent)
	}
}

func items[T any](all map[string]T) map[string][]T {
	found := map[string][]T{"items": {}}
	for _, each := range all {
		found["items"] = append(found["items"], each)
	}
	return found
}

func tell(answer http.ResponseWriter, status int, what any) {
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(status)
	_ = json.NewEncoder(answer).Encode(what)
}

func refuse(answer http.ResponseWriter, status int, code, pointer string) {
	problem := api.Problem{Status: status, Code: code, Title: "No"}
	if pointer != "" {
		problem.Errors = []api.FieldError{{Pointer: pointer, Detail: "It is wrong."}}
	}
	tell(answer, status, problem)
}
