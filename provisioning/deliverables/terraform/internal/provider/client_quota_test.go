package provider

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"freshet/terraform/internal/api"
)

func quotaConfig(more object) object {
	config := object{"cluster_id": clusterID}
	maps.Copy(config, more)
	return config
}

func FuzzQuotaKeysAreReadAsTheyWereWritten(f *testing.F) {
	f.Add("cred_a", "", false)
	f.Add("a/b=c%2F", "ä|#?", true)
	f.Fuzz(func(t *testing.T, user, client string, both bool) {
		of := api.QuotaEntity{User: &user}
		expected := map[string]string{"user": user}
		if both {
			of.ClientID = &client
			expected["client_id"] = client
		}
		key := quotaKey(of)
		if entity, err := quotaEntityOf(key); err != nil || !maps.Equal(entity, expected) {
			t.Errorf("%q became %v, %v", key, entity, err)
		}
	})
}

func TestQuotaKeysThatAreNone(t *testing.T) {
	for _, wrong := range []string{
		"", "user", "name=a", "user=a/user=b", "user=%zz", "user=a/", "/user=a",
	} {
		if entity, err := quotaEntityOf(wrong); err == nil {
			t.Errorf("took %q as %v", wrong, entity)
		}
	}
}

func TestQuotasAreMadeChangedAndRemoved(t *testing.T) {
	service, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	config := quotaConfig(object{"user": "", "produce_bytes_per_second": 1048576})
	state := walk.made("freshet_client_quota", nil, config)
	if state["id"] != "cl_a/user=" || *service.quotas["user="].ProduceBytesPerSecond != 1048576 {
		t.Errorf("%v, %v", state, service.quotas)
	}
	config = quotaConfig(object{"user": "", "connections": 7})
	state = walk.made("freshet_client_quota", state, config)
	quota := service.quotas["user="]
	if *quota.Connections != 7 || quota.ProduceBytesPerSecond != nil {
		t.Errorf("%+v", quota)
	}
	if !walk.plan("freshet_client_quota", state, quotaConfig(object{
		"client_id": "a", "fetch_bytes_per_second": 1,
	})).replaces {
		t.Error("quotas change whom they are of in place")
	}
	walk.made("freshet_client_quota", state, nil)
	if len(service.quotas) != 0 {
		t.Errorf("left %v", service.quotas)
	}
}

func TestAllQuotasAreOneList(t *testing.T) {
	service, endpoint := newFake(t)
	states := []object{}
	for _, user := range []string{"a", "b", "c"} {
		config := quotaConfig(object{"user": user, "request_percentage": 50})
		states = append(states, newWalker(t, endpoint).made("freshet_client_quota", nil, config))
	}
	percentage := 25.0
	changed := service.quotas["user=b"]
	changed.RequestPercentage = &percentage
	service.quotas["user=b"] = changed
	delete(service.quotas, "user=c")
	service.asked = nil
	reader := newWalker(t, endpoint)
	if state := reader.read("freshet_client_quota", states[0]); fmt.Sprint(state) !=
		fmt.Sprint(states[0]) {
		t.Errorf("%v is not %v", state, states[0])
	}
	if state := reader.read("freshet_client_quota", states[1]); fmt.Sprint(
		state["request_percentage"]) != "25" {
		t.Errorf("%v", state)
	}
	if state := reader.read("freshet_client_quota", states[2]); state != nil {
		t.Errorf("%v", state)
	}
	if !slices.Equal(service.asked, []string{"GET /clusters/cl_a/quotas"}) {
		t.Errorf("asked %v", service.asked)
	}
}

func TestQuotasOfOthersAreNotTakenOver(t *testing.T) {
	service, endpoint := newFake(t)
	config := quotaConfig(object{"client_id": "etl", "fetch_bytes_per_second": 1000})
	newWalker(t, endpoint).made("freshet_client_quota", nil, config)
	same := newWalker(t, endpoint).made("freshet_client_quota", nil, config)
	config["fetch_bytes_per_second"] = 2000
	_, said := newWalker(t, endpoint).apply("freshet_client_quota", nil, config)
	if len(said) != 1 || *service.quotas["client_id=etl"].FetchBytesPerSecond != 1000 {
		t.Errorf("said %v", said)
	}
	for _, id := range []string{"cl_a/client_id=etl", "cl_a/qta_client_id=etl"} {
		state, said := newWalker(t, endpoint).imported("freshet_client_quota", id)
		if fmt.Sprint(state) != fmt.Sprint(same) {
			t.Errorf("%v is not %v (%v)", state, same, said)
		}
	}
}

// A credential that was rotated keeps its quotas; the one in its place begins with the same.
func TestQuotasFollowARotation(t *testing.T) {
	service, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	app := object{
		"cluster_id": clusterID, "name": "app", "role": "none",
		"password_wo": "first-password-of-it", "password_wo_version": 1,
	}
	made := walk.made("freshet_credential", nil, app)
	config := quotaConfig(object{"user": made["username"], "connections": 5})
	before := walk.made("freshet_client_quota", nil, config)

	app["password_wo_version"] = 2
	made = newWalker(t, endpoint).made("freshet_credential", made, app)
	key := fmt.Sprintf("user=%s", made["username"])
	copied := service.quotas["user=cred_0"]
	user := "cred_1"
	copied.User = &user
	service.quotas[key] = copied

	walk = newWalker(t, endpoint)
	after := walk.made("freshet_client_quota", nil,
		quotaConfig(object{"user": made["username"], "connections": 9}))
	walk.made("freshet_client_quota", before, nil)
	if len(service.quotas) != 2 || *service.quotas[key].Connections != 9 {
		t.Errorf("%v", service.quotas)
	}
	walk.made("freshet_client_quota", after, nil)
	if _, exists := service.quotas[key]; exists {
		t.Errorf("left %v", service.quotas)
	}
}

func TestQuotasThatMakeNoSenseAreRefusedInThePlan(t *testing.T) {
	_, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	for _, wrong := range []object{
		{"connections": 1},
		{"user": "a"},
		{"user": "a", "connections_per_second": 1},
		{"ip": "10.0.0.1", "connections": 1},
		{"ip": "10.0.0.1", "fetch_bytes_per_second": 1},
		{"ip": "10.0.0.1", "user": "a", "connections_per_second": 1},
		{"user": "a", "client_id": "b", "connections": 1},
		{"user": "a", "connections": 0},
		{"user": "a", "request_percentage": 0},
		{"user": "a", "produce_bytes_per_second": 1.5},
	} {
		if said := walk.validated("freshet_client_quota", quotaConfig(wrong)); len(said) == 0 {
			t.Errorf("took %v", wrong)
		}
	}
	right := quotaConfig(object{"ip": "", "connections_per_second": 1})
	if said := walk.validated("freshet_client_quota", right); len(said) != 0 {
		t.Errorf("said %v", said[0])
	}
}
