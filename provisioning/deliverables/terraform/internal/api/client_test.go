package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// service answers with one handler after the other, and then with the last one again.
type service struct {
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
	answers  []http.HandlerFunc
}

func (s *service) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	s.mu.Lock()
	place := min(len(s.requests), len(s.answers)-1)
	s.requests = append(s.requests, request)
	s.bodies = append(s.bodies, string(body))
	s.mu.Unlock()
	s.answers[place](answer, request)
}

// clientOf returns a client of a service with these answers, the service, and the list of the
// pauses that the client makes, which take no time.
func clientOf(t *testing.T, answers ...http.HandlerFunc) (*Client, *service, *[]time.Duration) {
	t.Helper()
	fake := &service{answers: answers}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	pauses := &[]time.Duration{}
	client, err := New(Options{
		Endpoint: server.URL, Key: "fk_key", UserAgent: "test",
		Pause: func(ctx context.Context, length time.Duration) error {
			*pauses = append(*pauses, length)
			return ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client, fake, pauses
}

func says(status int, body string, headers ...string) http.HandlerFunc {
	return func(answer http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			answer.Header().Set(headers[i], headers[i+1])
		}
		answer.WriteHeader(status)
		_, _ = io.WriteString(answer, body)
	}
}

func refuses(status int, code string, headers ...string) http.HandlerFunc {
	return says(status, fmt.Sprintf(`{"code": %q, "title": "No", "status": %d}`, code, status),
		headers...)
}

// hangsUp closes the connection without an answer.
func hangsUp(answer http.ResponseWriter, _ *http.Request) {
	connection, _, err := answer.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

const budget = `{"id": "bud_a", "name": "Team", "thresholds": [50]}`

func TestRepeatsWhatMayWorkLater(t *testing.T) {
	for name, first := range map[string]http.HandlerFunc{
		"too many requests":     refuses(429, "too_many_requests"),
		"bad gateway":           says(502, "<html>"),
		"unavailable":           refuses(503, "unavailable"),
		"unknown outcome":       refuses(503, "outcome_unknown"),
		"gateway timeout":       says(504, ""),
		"first one still runs":  refuses(409, "idempotency_request_in_progress"),
		"connection is closed":  hangsUp,
		"answer ends too early": says(201, "{", "Content-Length", "100"),
	} {
		t.Run(name, func(t *testing.T) {
			client, asked, _ := clientOf(t, first, first, says(201, budget))
			made, err := client.CreateBudget(t.Context(), BudgetWish{})
			if err != nil || made.ID != "bud_a" {
				t.Fatalf("got %v, %v", made, err)
			}
			key := asked.requests[0].Header.Get("Idempotency-Key")
			for i, request := range asked.requests {
				if request.Header.Get("Idempotency-Key") != key || key == "" {
					t.Errorf("attempt %d has another key", i)
				}
				if asked.bodies[i] != asked.bodies[0] {
					t.Errorf("attempt %d has another body", i)
				}
			}
			if len(asked.requests) != 3 {
				t.Errorf("%d attempts", len(asked.requests))
			}
		})
	}
}

func TestDoesNotRepeatARefusal(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 409, 412, 422, 500} {
		client, asked, _ := clientOf(t, refuses(status, "no"))
		_, err := client.CreateBudget(t.Context(), BudgetWish{})
		if !HasCode(err, "no") || len(asked.requests) != 1 {
			t.Errorf("%d: %v after %d requests", status, err, len(asked.requests))
		}
	}
}

func TestWaitsAsLongAsTheServiceAsks(t *testing.T) {
	busy := refuses(429, "too_many_requests", "Retry-After", "7")
	client, _, pauses := clientOf(t, busy, says(200, budget))
	if _, err := client.Budget(t.Context(), "bud_a"); err != nil {
		t.Fatal(err)
	}
	if len(*pauses) != 1 || (*pauses)[0] != 7*time.Second {
		t.Errorf("paused %v", *pauses)
	}
}

func TestGivesUpAfterAWhile(t *testing.T) {
	client, _, pauses := clientOf(t, refuses(503, "unavailable"))
	_, err := client.Budget(t.Context(), "bud_a")
	if !HasCode(err, "unavailable") {
		t.Fatalf("got %v", err)
	}
	var sum time.Duration
	for _, length := range *pauses {
		sum += length
	}
	if sum > retryForAtMost || sum < retryForAtMost-2*pauseMax {
		t.Errorf("gave up after %v", sum)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client, _, _ := clientOf(t, func(answer http.ResponseWriter, request *http.Request) {
		cancel()
		refuses(503, "unavailable")(answer, request)
	})
	if _, err := client.Budget(ctx, "bud_a"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWaitsForTheOperationInTheWay(t *testing.T) {
	busy := says(409, `{"code": "operation_in_progress", "operation_id": "op_a"}`)
	done := says(200, `{"id": "op_a", "state": "succeeded"}`)
	client, asked, _ := clientOf(t, busy, done, says(200, `{"id": "cl_a"}`))
	if _, err := client.UpdateCluster(t.Context(), "cl_a", ClusterChange{}); err != nil {
		t.Fatal(err)
	}
	if path := asked.requests[1].URL.String(); path != "/api/v1/operations/op_a?wait=30" {
		t.Errorf("asked for %s", path)
	}
}

func TestClusterIsMadeWhenItsOperationSucceeded(t *testing.T) {
	begun := says(202, `{"id": "op_a", "resource_id": "cl_a", "state": "queued"}`)
	runs := says(200, `{"id": "op_a", "state": "running"}`)
	done := says(200, `{"id": "op_a", "state": "succeeded"}`)
	client, asked, _ := clientOf(t, begun, runs, runs, done)
	id, err := client.CreateCluster(t.Context(), NewCluster{Name: "a"})
	if id != "cl_a" || err != nil || len(asked.requests) != 4 {
		t.Errorf("%s, %v after %d requests", id, err, len(asked.requests))
	}
}

func TestAFailedOperationSaysWhyAndNamesWhatIsThere(t *testing.T) {
	begun := says(202, `{"id": "op_a", "resource_id": "cl_a", "state": "queued"}`)
	failed := says(200, `{"id": "op_a", "type": "create_cluster", "state": "failed",
		"error": {"code": "no_capacity", "detail": "The cell is full."}}`)
	client, _, _ := clientOf(t, begun, failed)
	id, err := client.CreateCluster(t.Context(), NewCluster{Name: "a"})
	if id != "cl_a" || err == nil || !strings.Contains(err.Error(), "The cell is full.") {
		t.Errorf("%s, %v", id, err)
	}
}

func TestListsReadAllPages(t *testing.T) {
	first := says(200, `{"items": [{"name": "a"}, {"name": "b"}], "next_cursor": "x=&y"}`)
	client, asked, _ := clientOf(t, first, says(200, `{"items": [{"name": "c"}]}`))
	topics, err := client.Topics(t.Context(), "cl_a", "basic")
	if err != nil || len(topics) != 3 || topics[2].Name != "c" {
		t.Fatalf("%v, %v", topics, err)
	}
	if cursor := asked.requests[1].URL.Query().Get("cursor"); cursor != "x=&y" {
		t.Errorf("cursor %q", cursor)
	}
}

func TestATopicThatIsOursAfterALostAnswerIsTaken(t *testing.T) {
	newTopics := []NewTopic{{Name: "a", Configs: map[string]string{"k": "v"}}}
	taken := refuses(409, "name_taken")
	existing := says(200, `{"name": "a", "partitions": 3, "configs": {"k": "v"}}`)
	client, _, _ := clientOf(t, hangsUp, taken, existing)
	topics, err := client.CreateTopics(t.Context(), "cl_a", newTopics)
	if err != nil || len(topics) != 1 || topics[0].Partitions != 3 {
		t.Errorf("%v, %v", topics, err)
	}
	other := says(200, `{"name": "a", "partitions": 3, "configs": {"k": "other"}}`)
	client, _, _ = clientOf(t, hangsUp, taken, other)
	if _, err = client.CreateTopics(t.Context(), "cl_a", newTopics); !HasCode(err, "name_taken") {
		t.Errorf("took another's: %v", err)
	}
	client, _, _ = clientOf(t, taken, existing)
	if _, err = client.CreateTopics(t.Context(), "cl_a", newTopics); !HasCode(err, "name_taken") {
		t.Errorf("took what was existing before: %v", err)
	}
}

func TestPartitionsThatWereAddedBeforeALostAnswerAreEnough(t *testing.T) {
	refused := refuses(422, "validation_failed")
	client, _, _ := clientOf(t, hangsUp, refused, says(200, `{"name": "a", "partitions": 6}`))
	topic, err := client.AddPartitions(t.Context(), "cl_a", "a", 6)
	if err != nil || topic.Partitions != 6 {
		t.Errorf("%v, %v", topic, err)
	}
}

func TestWhatIsGoneIsAsGoodAsDeleted(t *testing.T) {
	client, _, _ := clientOf(t, refuses(404, "not_found"))
	if err := client.DeleteTopic(t.Context(), "cl_a", "a"); err != nil {
		t.Error(err)
	}
}

func TestPartsOfAddressesAreEscaped(t *testing.T) {
	client, asked, _ := clientOf(t, says(200, "{}"))
	if _, err := client.Topic(t.Context(), "cl_a", "../x?y"); err != nil {
		t.Fatal(err)
	}
	if path := asked.requests[0].URL.EscapedPath(); path != "/api/v1/clusters/cl_a/topics/..%2Fx%3Fy" {
		t.Errorf("asked for %s", path)
	}
}

func TestTheKeyGoesNowhereElse(t *testing.T) {
	elsewhere := &service{answers: []http.HandlerFunc{says(200, "{}")}}
	server := httptest.NewServer(elsewhere)
	defer server.Close()
	client, _, _ := clientOf(t, says(307, "", "Location", server.URL))
	if _, err := client.Budget(t.Context(), "bud_a"); err == nil {
		t.Error("a redirect was taken for an answer")
	}
	if len(elsewhere.requests) != 0 {
		t.Error("the key was sent elsewhere")
	}
}

func TestAProblemSaysAllThatHelps(t *testing.T) {
	problem := &Problem{}
	text := `{"title": "The request has invalid values", "detail": "No.", "status": 422,
		"code": "validation_failed", "request_id": "req_a",
		"errors": [{"pointer": "/configs/retention.ms", "code": "invalid", "detail": "No number."}],
		"quota": {"name": "topics", "limit": 2, "used": 2}}`
	if err := json.Unmarshal([]byte(text), problem); err != nil {
		t.Fatal(err)
	}
	expected := "The request has invalid values: No; /configs/retention.ms: No number; " +
		"limit topics is 2, used 2 (422 validation_failed, request req_a)"
	if problem.Error() != expected {
		t.Errorf("says %q", problem.Error())
	}
}

func TestAnAddressMustBeOne(t *testing.T) {
	for _, address := range []string{"", "freshet.example.com", "ftp://x", "https://", "://"} {
		if _, err := New(Options{Endpoint: address, Key: "k"}); err == nil {
			t.Errorf("%q is taken for an address", address)
		}
	}
	client, err := New(Options{Endpoint: "https://x.example/api/v1/", Key: "k"})
	if err != nil || client.base != "https://x.example/api/v1" {
		t.Errorf("%v, %v", client, err)
	}
}
