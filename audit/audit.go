// Package audit is the log of what the bridge did: one JSON object a line,
// appended, folded and rotated (section L of proto/CONTRACT.md).
//
// A [Log] starts no goroutine. Write returns when its record is in the file.
// Callers put their lines down in a batch and then queue for the file; the first
// to get it writes the whole batch, and the others find their lines written.
//
// Order of events of one batch: share the file's lock, see that the path still
// leads to the open file (else open it anew: it was rotated by somebody or
// removed), append, let go. A rotation holds the same lock alone: no record is
// ever in the hands of a writer while its file is moved away, in this process or
// in another (L4).
//
// A [Reader] is the other half: it reads a log and its generations as calls and
// can go on with what comes. It never writes.
package audit

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
)

// Options of a Log.
type Options struct {
	MaxBytes int64        // size at which the log is rotated; default 512 KiB
	Keep     int          // rotated logs to keep, .1 the newest; default 1
	Secrets  *Secrets     // what must never show; nil: nothing
	Log      *slog.Logger // where trouble is told (L5); nil: nowhere
	Required bool         // Open fails where records could not be written
}

func (o Options) withDefaults() *Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = 512 << 10
	}
	if o.Keep == 0 {
		o.Keep = 1
	}
	if o.Secrets == nil {
		o.Secrets = &Secrets{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &o
}

// ErrClosed is what Write returns after Close.
var ErrClosed = errors.New("the audit log is closed")

// Log is an open audit log. Its methods may be used from any goroutine.
type Log struct {
	path     string
	opt      atomic.Pointer[Options]
	failures atomic.Int64

	mu      sync.Mutex // short: putting lines down
	pending *batch     // nil: nobody has put anything down
	spare   []byte     // a buffer for the next batch

	writing sync.Mutex // long: the file, and the result of a batch
	file    file
	closed  bool
}

// batch is what one write takes along.
type batch struct {
	lines   []byte
	written bool
	err     error
}

// Open opens the log at path, making it with mode 0600 if it is not there. A path
// that cannot be used is told on o.Log and costs the records; only with
// o.Required it is an error.
func Open(path string, o Options) (*Log, error) {
	l := &Log{path: path}
	l.opt.Store(o.withDefaults())
	if err := l.file.open(path); err != nil {
		if o.Required {
			return nil, err
		}
		l.failed(err)
	}
	return l, nil
}

// Configure changes the options while the log is in use.
func (l *Log) Configure(o Options) { l.opt.Store(o.withDefaults()) }

// Path is where the log is.
func (l *Log) Path() string { return l.path }

// Failures counts the records that could not be written.
func (l *Log) Failures() int64 { return l.failures.Load() }

// Write appends a record. It returns when the line is in the file, or with the
// reason why it is not; that is also counted and told (L5), so that a caller may
// go on.
func (l *Log) Write(r Record) error {
	opt := l.opt.Load()
	line := r.append(takeBuffer(), opt.Secrets)

	l.mu.Lock()
	if l.pending == nil {
		l.pending = &batch{lines: l.spare[:0]}
		l.spare = nil
	}
	mine := l.pending
	mine.lines = append(mine.lines, line...)
	l.mu.Unlock()
	giveBuffer(line)

	err := l.flush(mine, opt)
	if err != nil {
		l.failed(err)
	}
	return err
}

// flush writes the batch unless somebody has done so while this caller queued.
func (l *Log) flush(mine *batch, opt *Options) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if mine.written {
		return mine.err
	}
	l.mu.Lock()
	l.pending = nil // it is mine: whoever comes now starts the next one
	l.mu.Unlock()
	mine.written = true
	if l.closed {
		mine.err = ErrClosed
		return mine.err
	}
	mine.err = l.file.append(l.path, mine.lines, opt)
	if cap(mine.lines) <= maxBuffer {
		l.mu.Lock()
		l.spare = mine.lines
		l.mu.Unlock()
	}
	mine.lines = nil
	return mine.err
}

// failed counts a record that is lost and tells of the first and of every
// hundredth (L5).
func (l *Log) failed(err error) {
	if n := l.failures.Add(1); n == 1 || n%100 == 0 {
		l.opt.Load().Log.Warn("audit write failed", "path", l.path, "err", err, "lost", n)
	}
}

// Close waits for what is being written and closes the file.
func (l *Log) Close() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.closed = true
	return l.file.close()
}
