package provider

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func number(t *testing.T, value tftypes.Value) any {
	t.Helper()
	var float big.Float
	if err := value.As(&float); err != nil {
		t.Fatal(err)
	}
	whole, _ := float.Int64()
	return whole
}

func topicConfig(name string, more object) object {
	config := object{"cluster_id": clusterID, "name": name}
	for key, value := range more {
		config[key] = value
	}
	return config
}

func TestATopicIsMadeChangedAndDeleted(t *testing.T) {
	service, endpoint := newFake(t)
	config := topicConfig("a", object{"configs": object{"retention.ms": "1", "cleanup.policy": "x"}})
	state := newWalker(t, endpoint).made("freshet_topic", nil, config)
	if state["id"] != "cl_a/a" || state["partitions"] != int64(3) {
		t.Errorf("%v", state)
	}
	changed := topicConfig("a", object{"partitions": 6, "configs": object{"retention.ms": "2"}})
	state = newWalker(t, endpoint).made("freshet_topic", state, changed)
	topic := service.topics["a"]
	if topic.Partitions != 6 || len(topic.Configs) != 1 || topic.Configs["retention.ms"] != "2" {
		t.Errorf("%v", topic)
	}
	again := newWalker(t, endpoint).read("freshet_topic", state)
	if fmt.Sprint(again) != fmt.Sprint(state) {
		t.Errorf("read %v, had %v", again, state)
	}
	newWalker(t, endpoint).made("freshet_topic", state, nil)
	if len(service.topics) != 0 {
		t.Errorf("%v", service.topics)
	}
}

func TestReadingManyTopicsIsOneRequest(t *testing.T) {
	service, endpoint := newFake(t)
	writer := newWalker(t, endpoint)
	states := make([]object, 40)
	var making sync.WaitGroup
	for i := range states {
		making.Go(func() {
			name := fmt.Sprintf("topic-%d", i)
			states[i], _ = writer.apply("freshet_topic", nil, topicConfig(name, nil))
		})
	}
	making.Wait()
	if len(service.topics) != 40 || len(service.asked) > 40 {
		t.Errorf("%d topics by %d requests", len(service.topics), len(service.asked))
	}
	service.asked = nil
	reader := newWalker(t, endpoint)
	var reading sync.WaitGroup
	for _, state := range states {
		reading.Go(func() {
			if current := reader.read("freshet_topic", state); current == nil {
				t.Errorf("%v is gone", state["name"])
			}
		})
	}
	reading.Wait()
	if !slices.Equal(service.asked, []string{"GET /clusters/cl_a/topics"}) {
		t.Errorf("asked %v", service.asked)
	}
}

func TestDriftAndAbsenceShow(t *testing.T) {
	service, endpoint := newFake(t)
	state := newWalker(t, endpoint).made("freshet_topic", nil, topicConfig("a", nil))
	service.topics["a"].Configs["retention.ms"] = "1"
	current := newWalker(t, endpoint).read("freshet_topic", state)
	if fmt.Sprint(current["configs"]) != "map[retention.ms:1]" {
		t.Errorf("%v", current)
	}
	delete(service.topics, "a")
	if current := newWalker(t, endpoint).read("freshet_topic", state); current != nil {
		t.Errorf("%v", current)
	}
	state["cluster_id"] = "cl_gone"
	if current := newWalker(t, endpoint).read("freshet_topic", state); current != nil {
		t.Errorf("%v", current)
	}
}

func TestWhatCannotChangeReplaces(t *testing.T) {
	_, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	state := walk.made("freshet_topic", nil, topicConfig("a", nil))
	if !walk.plan("freshet_topic", state, topicConfig("b", nil)).replaces {
		t.Error("a topic is renamed in place")
	}
	if walk.plan("freshet_topic", state, topicConfig("a", object{"partitions": 4})).replaces {
		t.Error("a topic that grows is made anew")
	}
	said := walk.plan("freshet_topic", state, topicConfig("a", object{"partitions": 2})).said
	if len(said) != 1 || said[0].Summary != "A topic cannot lose partitions" {
		t.Errorf("said %v", said)
	}
}

func TestOneOfABatchThatIsWrongStopsNoOther(t *testing.T) {
	service, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	said := make([][]*tfprotov6.Diagnostic, 5)
	var making sync.WaitGroup
	for i, name := range []string{"a", "b", "bad", "c", "d"} {
		making.Go(func() {
			config := topicConfig(name, object{"configs": object{"retention.ms": "x"}})
			_, said[i] = walk.apply("freshet_topic", nil, config)
		})
	}
	making.Wait()
	if len(service.topics) != 4 {
		t.Errorf("%v", service.topics)
	}
	for i, diagnostics := range said {
		if (len(diagnostics) > 0) != (i == 2) {
			t.Errorf("%d: %v", i, diagnostics)
		}
	}
	place := said[2][0].Attribute.String()
	if !strings.Contains(place, "configs") || !strings.Contains(place, "retention.ms") {
		t.Errorf("it is at %s", place)
	}
}

func TestAPasswordIsHandedOnAndForgotten(t *testing.T) {
	service, endpoint := newFake(t)
	config := object{
		"cluster_id": clusterID, "name": "app", "role": "none",
		"password_wo": "first-password-of-it", "password_wo_version": 1,
	}
	walk := newWalker(t, endpoint)
	state := walk.made("freshet_credential", nil, config)
	if state["password_wo"] != nil || service.passwords["cred_0"] != "first-password-of-it" {
		t.Errorf("%v, %v", state, service.passwords)
	}
	config["password_wo"], config["password_wo_version"] = "second-password-of-it", 2
	planned := walk.shown("freshet_credential",
		walk.plan("freshet_credential", state, config).planned)
	if planned["username"] != "unknown" || planned["password_wo"] != nil {
		t.Errorf("plans %v", planned)
	}
	state = walk.made("freshet_credential", state, config)
	if state["username"] != "cred_1" || service.passwords["cred_1"] != "second-password-of-it" {
		t.Errorf("%v, %v", state, service.passwords)
	}
	newWalker(t, endpoint).made("freshet_credential", state, nil)
	if len(service.credentials) != 0 {
		t.Errorf("left %v", service.credentials)
	}
}

func TestAProtectedClusterIsNotPlannedAway(t *testing.T) {
	_, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	state, said := walk.imported("freshet_cluster", clusterID)
	walk.must(nil, said)
	said = walk.plan("freshet_cluster", state, nil).said
	if len(said) != 1 || said[0].Summary != protectedSummary {
		t.Errorf("said %v", said)
	}
	state["deletion_protection"] = false
	if said = walk.plan("freshet_cluster", state, nil).said; len(said) != 0 {
		t.Errorf("said %v", said)
	}
}

func TestAClusterHasUpToSixteenBrokers(t *testing.T) {
	_, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	schema := walk.schemas["freshet_cluster"]
	for brokers, refused := range map[int]bool{0: true, 1: false, 16: false, 17: true} {
		config := object{"name": "orders", "scale": object{"min": nil, "max": brokers}}
		answer, err := walk.server.ValidateResourceConfig(t.Context(),
			&tfprotov6.ValidateResourceConfigRequest{
				TypeName: "freshet_cluster", Config: walk.value(schema, config),
			})
		if err != nil {
			t.Fatal(err)
		}
		if (len(answer.Diagnostics) > 0) != refused {
			t.Errorf("%d brokers: %v", brokers, answer.Diagnostics)
		}
	}
}

func TestImportsAreByName(t *testing.T) {
	service, endpoint := newFake(t)
	config := topicConfig("a", object{"configs": object{"k": "v"}})
	made := newWalker(t, endpoint).made("freshet_topic", nil, config)
	imported, said := newWalker(t, endpoint).imported("freshet_topic", "cl_a/a")
	if fmt.Sprint(imported) != fmt.Sprint(made) {
		t.Errorf("%v is not %v (%v)", imported, made, said)
	}
	for _, wrong := range []string{"a", "cl_a/", "/a", ""} {
		if _, said := newWalker(t, endpoint).imported("freshet_topic", wrong); len(said) == 0 {
			t.Errorf("took %q", wrong)
		}
	}
	if imported, _ := newWalker(t, endpoint).imported("freshet_topic", "cl_other/a"); imported != nil {
		t.Errorf("imported %v", imported)
	}
	if len(service.topics) != 1 {
		t.Errorf("%v", service.topics)
	}
}

func TestModelsFitTheirSchemas(t *testing.T) {
	_, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	schemas := schemasOf(t)
	for name := range schemas.ResourceSchemas {
		answer, err := walk.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
			TypeName: name, CurrentState: walk.value(schemas.ResourceSchemas[name], object{}),
		})
		noMismatch(t, name, err, answer.Diagnostics)
	}
	for name, schema := range schemas.DataSourceSchemas {
		answer, err := walk.server.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{
			TypeName: name, Config: walk.value(schema, object{}),
		})
		noMismatch(t, name, err, answer.Diagnostics)
	}
}

// noMismatch fails where a model does not fit its schema. Refusals of the service are expected,
// because nothing that the test asks for exists.
func noMismatch(t *testing.T, name string, err error, said []*tfprotov6.Diagnostic) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for _, diagnostic := range said {
		if strings.Contains(diagnostic.Summary, "Conversion") {
			t.Errorf("%s: %s", name, diagnostic.Detail)
		}
	}
}
