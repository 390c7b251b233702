// Package api is a client of Freshet's REST interface, /api/v1.
//
// It does not depend on Terraform. A call is repeated where that can help: when the connection
// fails, when the service is overloaded or a part of it restarts (429, 502, 503, 504), and when
// another operation has to end first. A POST has an Idempotency-Key, so that the service does its
// work once however often it is sent.
package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	root = "/api/v1"
	// Longer than operationWait, the longest time for which the service is asked to wait.
	requestTimeout = 90 * time.Second
	retryForAtMost = 5 * time.Minute
	pauseFirst     = 250 * time.Millisecond
	pauseMax       = 10 * time.Second
	retryAfterMax  = time.Minute
	answerBytesMax = 64 << 20
)

// Attempt is one request and its answer, for a log.
type Attempt struct {
	Method string
	Path   string
	Status int // 0: the connection failed
	Err    error
}

// Options configure a client. Only Endpoint and Key are required.
type Options struct {
	Endpoint  string // such as https://freshet.example.com
	Key       string // an API key's secret
	UserAgent string
	RetryFor  time.Duration // how long a call is repeated; 0: five minutes
	Observe   func(context.Context, Attempt)
	// Pause waits between two attempts, or returns the context's error. nil waits by the clock.
	Pause func(context.Context, time.Duration) error
}

// Client makes the calls of one organization. Several goroutines may use it.
type Client struct {
	base    string
	options Options
	http    *http.Client
}

// New makes a client, without connecting. It fails for an endpoint that is no address, and without
// a key.
func New(options Options) (*Client, error) {
	address, err := url.Parse(options.Endpoint)
	if err != nil || (address.Scheme != "http" && address.Scheme != "https") || address.Host == "" {
		return nil, fmt.Errorf("%q is not an http:// or https:// address", options.Endpoint)
	}
	if options.Key == "" {
		return nil, errors.New("an API key is needed")
	}
	if options.RetryFor == 0 {
		options.RetryFor = retryForAtMost
	}
	if options.Pause == nil {
		options.Pause = pauseFor
	}
	if options.Observe == nil {
		options.Observe = func(context.Context, Attempt) {}
	}
	base := strings.TrimSuffix(strings.TrimRight(options.Endpoint, "/"), root) + root
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 32 // Terraform walks with ten and more goroutines
	httpClient := &http.Client{Timeout: requestTimeout, Transport: transport}
	// Redirects are refused, so that the key is sent to the configured address only.
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	return &Client{base: base, options: options, http: httpClient}, nil
}

// call is one request to be made, however many attempts it takes.
type call struct {
	method string
	path   string // below /api/v1, its parts escaped
	query  url.Values
	body   any
}

// do makes a call and decodes its answer. repeated says that the outcome of an earlier attempt is
// unknown: what the call creates may exist already. The error is a *Problem where the service
// refused.
func (c *Client) do(ctx context.Context, what call, answer any) (repeated bool, err error) {
	body, err := encodeBody(what.body)
	if err != nil {
		return false, err
	}
	key := ""
	if what.method == http.MethodPost {
		key = newKey()
	}
	// The call gives up by the sum of its pauses and not by the clock, which tests do not wait for.
	var waited time.Duration
	for attempt := 0; ; attempt++ {
		verdict := c.attempt(ctx, what, body, key, answer)
		if verdict.err == nil || !verdict.again {
			return repeated, verdict.err
		}
		repeated = repeated || verdict.lost
		if verdict.operation != "" {
			if _, err := c.WaitOperation(ctx, verdict.operation); err != nil && ctx.Err() != nil {
				return repeated, err
			}
		}
		next := max(verdict.after, backoff(attempt))
		if waited += next; waited > c.options.RetryFor {
			return repeated, fmt.Errorf("repeated for %s: %w", c.options.RetryFor, verdict.err)
		}
		if err := c.options.Pause(ctx, next); err != nil {
			return repeated, fmt.Errorf("%w, after: %w", err, verdict.err)
		}
	}
}

// verdict is the outcome of one attempt.
type verdict struct {
	err       error
	again     bool          // repeating may help
	lost      bool          // the service may have done it, and the answer is lost
	after     time.Duration // how long the service asks to wait
	operation string        // the id of the operation that must end before
}

func (c *Client) attempt(
	ctx context.Context, what call, body []byte, key string, answer any,
) verdict {
	target := c.base + what.path
	if len(what.query) > 0 {
		target += "?" + what.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, what.method, target, bytes.NewReader(body))
	if err != nil {
		return verdict{err: err}
	}
	request.Header.Set("Authorization", "Bearer "+c.options.Key)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", c.options.UserAgent)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		c.options.Observe(ctx, Attempt{Method: what.method, Path: what.path, Err: err})
		return verdict{err: err, again: ctx.Err() == nil, lost: !neverSent(err)}
	}
	defer func() { _ = response.Body.Close() }()
	c.options.Observe(ctx, Attempt{what.method, what.path, response.StatusCode, nil})
	content, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return verdict{err: err, again: ctx.Err() == nil, lost: true}
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return judgeRefusal(response, content)
	}
	return verdict{err: decodeAnswer(content, answer)}
}

// judgeRefusal decides whether a call is repeated after a refusal.
func judgeRefusal(response *http.Response, content []byte) verdict {
	problem := problemOf(response.StatusCode, content)
	result := verdict{err: problem, after: retryAfter(response.Header)}
	switch {
	case problem.Code == "operation_in_progress":
		result.again, result.operation = true, problem.OperationID
	case problem.Code == "idempotency_request_in_progress":
		result.again, result.lost = true, true
	case response.StatusCode == http.StatusTooManyRequests:
		result.again = true
	case response.StatusCode == http.StatusBadGateway,
		response.StatusCode == http.StatusServiceUnavailable,
		response.StatusCode == http.StatusGatewayTimeout:
		result.again, result.lost = true, true
	}
	return result
}

// neverSent says whether a request certainly did not arrive, because no connection was made.
func neverSent(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}

// retryAfter reads the header Retry-After in seconds: 0 without it, at most retryAfterMax.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, retryAfterMax)
}

// backoff is the pause after an attempt: it doubles from pauseFirst to pauseMax.
func backoff(attempt int) time.Duration {
	return min(pauseFirst<<min(attempt, 10), pauseMax)
}

func pauseFor(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func newKey() string { return "tf-" + rand.Text() }

func encodeBody(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return encoded, nil
}

func decodeAnswer(content []byte, answer any) error {
	if answer == nil || len(content) == 0 {
		return nil
	}
	if err := json.Unmarshal(content, answer); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	return nil
}

// get, post, patch and remove make a call of one method.

func (c *Client) get(ctx context.Context, path string, query url.Values, answer any) error {
	_, err := c.do(ctx, call{http.MethodGet, path, query, nil}, answer)
	return err
}

func (c *Client) post(ctx context.Context, path string, body, answer any) (bool, error) {
	return c.do(ctx, call{http.MethodPost, path, nil, body}, answer)
}

func (c *Client) patch(ctx context.Context, path string, body, answer any) error {
	_, err := c.do(ctx, call{http.MethodPatch, path, nil, body}, answer)
	return err
}

// remove makes a DELETE. A resource that does not exist is no error.
func (c *Client) remove(ctx context.Context, path string, query url.Values, answer any) error {
	_, err := c.do(ctx, call{http.MethodDelete, path, query, nil}, answer)
	if IsNotFound(err) {
		return nil
	}
	return err
}

// at joins the parts of a path, each of them escaped.
func at(parts ...string) string {
	var path strings.Builder
	for _, part := range parts {
		path.WriteString("/" + url.PathEscape(part))
	}
	return path.String()
}
