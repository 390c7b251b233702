package provider

import (
	"context"
	"fmt"

	"freshet/terraform/internal/api"
	"freshet/terraform/internal/cache"
)

// listed are the lists of one kind of thing, with its name for messages: "topic", "service
// account".
type listed[T any] struct {
	*cache.Lists[T]
	kind string
}

// listedBy makes the lists of a kind. load reads the list of a scope when it is needed first; key
// is what an item is looked up by.
func listedBy[T any](
	kind string, load func(context.Context, string) ([]T, error), key func(T) string,
) listed[T] {
	return listed[T]{cache.New(load, key, api.IsNotFound), kind}
}

// listedOnce makes the list of a kind that belongs to the organization and not to a cluster. Its
// one scope is the constant organization.
func listedOnce[T any](
	kind string, load func(context.Context) ([]T, error), key func(T) string,
) listed[T] {
	all := func(ctx context.Context, _ string) ([]T, error) { return load(ctx) }
	return listedBy(kind, all, key)
}

// get finds an item by its key. An item that does not exist is a not-found error.
func (l listed[T]) get(ctx context.Context, scope, key string) (T, error) {
	item, exists, err := l.Find(ctx, scope, key)
	if err == nil && !exists {
		err = absent(l.kind, key)
	}
	return item, err
}

// first finds the first item that matches. Where none does it returns a not-found error with name.
func (l listed[T]) first(
	ctx context.Context, scope, name string, matches func(T) bool,
) (none T, err error) {
	all, err := l.All(ctx, scope)
	if err != nil {
		return none, err
	}
	for _, item := range all {
		if matches(item) {
			return item, nil
		}
	}
	return none, absent(l.kind, name)
}

// removed ends a deletion: without an error it takes the item out of the list. It returns err.
func (l listed[T]) removed(scope, key string, err error) error {
	if err == nil {
		l.Remove(scope, key)
	}
	return err
}

// absent is the not-found error for an item that a list does not have.
func absent(kind, name string) error {
	return &api.Problem{
		Status: 404, Code: "not_found", Title: fmt.Sprintf("There is no %s %q", kind, name),
	}
}

// shownAll shows the items of a list that are chosen.
func shownAll[T, S any](all []T, chosen func(T) bool, show func(T) S) []S {
	shown := []S{}
	for _, item := range all {
		if chosen(item) {
			shown = append(shown, show(item))
		}
	}
	return shown
}

// shownBy returns a model whose show was called with an item.
func shownBy[M, T any, P interface {
	*M
	show(T)
}](item T) M {
	var model M
	P(&model).show(item)
	return model
}

// every chooses all items; see shownAll.
func every[T any](T) bool { return true }
