package sidecar

import (
	"context"
	"sync"
)

// lane runs what is put into it one at a time, in order. Putting never blocks:
// it is done by the goroutine that reads the host's lines.
type lane struct {
	wake chan struct{} // capacity 1

	mu    sync.Mutex
	queue []func(context.Context)
}

func newLane() *lane { return &lane{wake: make(chan struct{}, 1)} }

func (l *lane) put(work func(context.Context)) {
	l.mu.Lock()
	l.queue = append(l.queue, work)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *lane) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.wake:
		}
		for _, work := range l.take() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			work(ctx)
		}
	}
}

func (l *lane) take() []func(context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queue
	l.queue = nil
	return queue
}
