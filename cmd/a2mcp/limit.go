package main

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// limit is how long something may take: a number of seconds, or one with units as
// in 90s, 5m or 1h30m. Zero is no limit. The Python client reads it alike (C1).
type limit time.Duration

// longest is the longest limit; who wants more says 0.
const longest = 10_000 * time.Hour

// UnmarshalText is how kong reads the flag.
func (l *limit) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if seconds, e := strconv.ParseFloat(string(text), 64); e == nil && seconds < longest.Seconds() {
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || d < 0 || d > longest {
		return errors.New("write a number of seconds, or one with units as in 90s, 5m or 1h30m")
	}
	*l = limit(d)
	return nil
}

// context is one that ends after the limit.
func (l limit) context(parent context.Context) (context.Context, context.CancelFunc) {
	if l == 0 {
		return context.WithCancel(parent)
	}
	return context.WithTimeout(parent, time.Duration(l))
}
