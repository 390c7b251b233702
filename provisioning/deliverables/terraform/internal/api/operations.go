package api

import (
	"context"
	"fmt"
	"net/url"
)

// operationWait is how long the service is asked to wait for an operation's end, in seconds.
const operationWait = "30"

// OperationError is why an operation failed.
type OperationError struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Operation is work that takes longer than a request. State is queued, running, succeeded, failed
// or cancelled; the last three are final.
type Operation struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	ResourceID string          `json:"resource_id"`
	State      string          `json:"state"`
	Progress   int64           `json:"progress"`
	Error      *OperationError `json:"error"`
}

// WaitOperation returns when an operation has succeeded, with an error when it has not, or when the
// context ends. A worker that dies on the way costs time, no more: another goes on.
func (c *Client) WaitOperation(ctx context.Context, id string) (Operation, error) {
	for {
		var found Operation
		query := url.Values{"wait": {operationWait}}
		if err := c.get(ctx, at("operations", id), query, &found); err != nil {
			return found, fmt.Errorf("wait for operation %s: %w", id, err)
		}
		switch found.State {
		case "succeeded":
			return found, nil
		case "queued", "running":
			if err := c.options.Pause(ctx, pauseFirst); err != nil {
				return found, fmt.Errorf("operation %s is %s: %w", id, found.State, err)
			}
		default:
			return found, found.failure()
		}
	}
}

func (o Operation) failure() error {
	if o.Error == nil {
		return fmt.Errorf("operation %s (%s) is %s", o.ID, o.Type, o.State)
	}
	return fmt.Errorf("operation %s (%s) is %s: %s (%s)",
		o.ID, o.Type, o.State, o.Error.Detail, o.Error.Code)
}
