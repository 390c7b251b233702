package provider

import (
	"context"
	"fmt"

	"freshet/terraform/internal/api"
	"freshet/terraform/internal/cache"
)

// listed are the lists of one kind of thing, and what it is called: "topic", "service account".
type listed[T any] struct {
	*cache.Lists[T]
	kind string
}

// listedBy reads the lists of a kind when one is needed, each once. key is what an item is found
// by.
func listedBy[T any](
	kind string, load func(context.Context, string) ([]T, error), key func(T) string,
) listed[T] {
	return listed[T]{cache.New(load, key, api.IsNotFound), kind}
}

// listedOnce is of what is the organisation's, not a cluster's: one list, in the scope
// organization.
func listedOnce[T any](
	kind string, load func(context.Context) ([]T, error), key func(T) string,
) listed[T] {
	all := func(ctx context.Context, _ string) ([]T, error) { return load(ctx) }
	return listedBy(kind, all, key)
}

// get finds by key; what is not there is a not-found error.
func (l listed[T]) get(ctx context.Context, scope, key string) (T, error) {
	found, there, err := l.Find(ctx, scope, key)
	if err == nil && !there {
		err = absent(l.kind, key)
	}
	return found, err
}

// first finds what matches; name is what it was looked for by.
func (l listed[T]) first(
	ctx context.Context, scope, name string, matches func(T) bool,
) (found T, err error) {
	all, err := l.All(ctx, scope)
	if err != nil {
		return found, err
	}
	for _, each := range all {
		if matches(each) {
			return each, nil
		}
	}
	return found, absent(l.kind, name)
}

// removed ends a deletion: what went well is forgotten.
func (l listed[T]) removed(scope, key string, err error) error {
	if err == nil {
		l.Remove(scope, key)
	}
	return err
}

// absent is the error of what a list does not have.
func absent(kind, name string) error {
	return &api.Problem{
		Status: 404, Code: "not_found", Title: fmt.Sprintf("There is no %s %q", kind, name),
	}
}

// shownAll shows those of a list that are chosen.
func shownAll[T, S any](all []T, chosen func(T) bool, show func(T) S) []S {
	found := []S{}
	for _, each := range all {
		if chosen(each) {
			found = append(found, show(each))
		}
	}
	return found
}

// shownBy gives a model that shows what was found.
func shownBy[M, T any, P interface {
	*M
	show(T)
}](found T) M {
	var model M
	P(&model).show(found)
	return model
}

// every chooses all.
func every[T any](T) bool { return true }
