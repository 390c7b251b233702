package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// FieldError is an error in one place of a request. Pointer is a JSON pointer into the body (RFC
// 6901), or "?" and the name of a query parameter.
type FieldError struct {
	Pointer string `json:"pointer"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

// Quota is a published limit that a request would exceed.
type Quota struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"`
	Used  int64  `json:"used"`
}

// Problem is a refusal by the API, an RFC 9457 problem document. The meaning of a code never
// changes.
type Problem struct {
	Status      int          `json:"status"`
	Code        string       `json:"code"`
	Title       string       `json:"title"`
	Detail      string       `json:"detail"`
	RequestID   string       `json:"request_id"`
	OperationID string       `json:"operation_id"`
	Errors      []FieldError `json:"errors"`
	Quota       *Quota       `json:"quota"`
}

// Error says what is wrong and where, and the request's id, by which the service's logs name it.
func (p *Problem) Error() string {
	var text strings.Builder
	text.WriteString(strings.TrimRight(p.Title, "."))
	if p.Detail != "" && strings.TrimRight(p.Detail, ".") != strings.TrimRight(p.Title, ".") {
		text.WriteString(": " + strings.TrimRight(p.Detail, "."))
	}
	for _, fieldError := range p.Errors {
		fmt.Fprintf(&text, "; %s: %s", fieldError.Pointer, strings.TrimRight(fieldError.Detail, "."))
	}
	if p.Quota != nil {
		fmt.Fprintf(&text, "; limit %s is %d, used %d", p.Quota.Name, p.Quota.Limit, p.Quota.Used)
	}
	fmt.Fprintf(&text, " (%d %s", p.Status, p.Code)
	if p.RequestID != "" {
		text.WriteString(", request " + p.RequestID)
	}
	return text.String() + ")"
}

// HasCode says whether an error is a problem with one of these codes.
func HasCode(err error, codes ...string) bool {
	var problem *Problem
	if !errors.As(err, &problem) {
		return false
	}
	for _, code := range codes {
		if problem.Code == code {
			return true
		}
	}
	return false
}

// IsNotFound says whether a resource does not exist or belongs to another organization: the API
// answers both in the same way.
func IsNotFound(err error) bool {
	var problem *Problem
	return errors.As(err, &problem) && problem.Status == http.StatusNotFound
}

// IsRefused says whether the service refused the request, so that repeating it does not help.
func IsRefused(err error) bool {
	var problem *Problem
	return errors.As(err, &problem) && problem.Status < http.StatusInternalServerError
}

// problemOf reads a refusal. An answer that is not a problem document comes from something between
// the client and the service, such as a proxy.
func problemOf(status int, body []byte) *Problem {
	problem := &Problem{}
	if json.Unmarshal(body, problem) == nil && problem.Code != "" {
		problem.Status = status
		return problem
	}
	return &Problem{
		Status: status,
		Code:   "no_problem_document",
		Title:  http.StatusText(status),
		Detail: "Freshet did not send this answer: look for a proxy between here and the service",
	}
}
