package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// FieldError is what is wrong with one place of a request. Pointer is a JSON pointer into the body
// (RFC 6901), or the name of a query parameter behind "?".
type FieldError struct {
	Pointer string `json:"pointer"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

// Quota is a published limit that was met.
type Quota struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"`
	Used  int64  `json:"used"`
}

// Problem is a refusal by the API, an RFC 9457 problem document. Codes never change.
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

// Error says what is wrong, where, and by which id the service's logs know the request.
func (p *Problem) Error() string {
	var text strings.Builder
	text.WriteString(strings.TrimRight(p.Title, "."))
	if p.Detail != "" && strings.TrimRight(p.Detail, ".") != strings.TrimRight(p.Title, ".") {
		text.WriteString(": " + strings.TrimRight(p.Detail, "."))
	}
	for _, each := range p.Errors {
		fmt.Fprintf(&text, "; %s: %s", each.Pointer, strings.TrimRight(each.Detail, "."))
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

// HasCode tells whether an error is a problem with one of these codes.
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

// IsNotFound tells whether what was asked for is absent, or another organisation's: the API shows
// no difference.
func IsNotFound(err error) bool {
	var problem *Problem
	return errors.As(err, &problem) && problem.Status == http.StatusNotFound
}

// IsRefused tells whether the service decided against the request: repeating it changes nothing.
func IsRefused(err error) bool {
	var problem *Problem
	return errors.As(err, &problem) && problem.Status < http.StatusInternalServerError
}

// problemOf reads a refusal. What is no problem document comes from something in between.
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
		Detail: "the answer is none of Freshet's; look at what stands between here and the service",
	}
}
