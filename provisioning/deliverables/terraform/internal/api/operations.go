package api

import (
	"context"
	"fmt"
	"net/url"
)

// operationWait is how long the service is asked to wait for an operation's end, in seconds.
const operationWait = "30"

// OperationError says why an operation failed.
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

// WaitOperation waits until an operation has succeeded. It returns an error where the operation
// failed or was cancelled, and where the context ends before.
func (c *Client) WaitOperation(ctx context.Context, id string) (Operation, error) {
	for {
		var operation Operation
		query := url.Values{"wait": {operationWait}}
		if err := c.get(ctx, at("operations", id), query, &operation); err != nil {
			return operation, fmt.Errorf("wait for operation %s: %w", id, err)
		}
		switch operation.State {
		case "succeeded":
			return operation, nil
		case "queued", "running":
			if err := c.options.Pause(ctx, pauseFirst); err != nil {
				return operation, fmt.Errorf("operation %s is %s: %w", id, operation.State, err)
			}
		default:
			return operation, operation.failure()
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
