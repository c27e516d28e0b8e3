package hostrpc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
)

// pipes are the two ways there are to connect two ends within a process.
var pipes = map[string]func() (io.ReadCloser, io.WriteCloser){
	"io.Pipe": func() (io.ReadCloser, io.WriteCloser) { return io.Pipe() },
	"os.Pipe": func() (io.ReadCloser, io.WriteCloser) {
		r, w, err := os.Pipe()
		if err != nil {
			panic(err)
		}
		return r, w
	},
}

func benchPair(b *testing.B, pipe func() (io.ReadCloser, io.WriteCloser), handler Handler) *Conn {
	toHost, fromSidecar := pipe()
	toSidecar, fromHost := pipe()
	host := New(toHost, fromHost, handler, Options{Side: "h"})
	sidecar := New(toSidecar, fromSidecar, func(context.Context, *Request) {}, Options{Side: "s"})
	done := make(chan struct{}, 2)
	for _, c := range []*Conn{host, sidecar} {
		go func() {
			_ = c.Run(context.Background())
			done <- struct{}{}
		}()
	}
	b.Cleanup(func() {
		fromHost.Close()
		fromSidecar.Close()
		<-done
		<-done
	})
	return sidecar
}

// BenchmarkCall is a round trip with about as many bytes as a trivial tool call has.
func BenchmarkCall(b *testing.B) {
	params := []byte(`{"callId":"6a2f41a3-c54c-4b52-9a8b-3a6f1f0e2d11","name":"echo","arguments":{"text":"hello"}}`)
	result := []byte(`{"outcome":"done","content":[{"type":"text","text":"hello"}],"isError":false}`)
	answer := func(_ context.Context, req *Request) { _ = req.Reply(result) }
	for _, name := range []string{"io.Pipe", "os.Pipe"} {
		call := func(b *testing.B, c *Conn) {
			got, err := c.Call(context.Background(), "tools/call", params)
			if err != nil || !bytes.Equal(got, result) {
				b.Fatal(string(got), err)
			}
		}
		b.Run(name+"/1", func(b *testing.B) {
			c := benchPair(b, pipes[name], answer)
			b.ReportAllocs()
			for b.Loop() {
				call(b, c)
			}
		})
		b.Run(name+"/64", func(b *testing.B) {
			c := benchPair(b, pipes[name], answer)
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					call(b, c)
				}
			})
		})
	}
}

// BenchmarkLarge is a round trip with a value of that many bytes each way.
func BenchmarkLarge(b *testing.B) {
	answer := func(_ context.Context, req *Request) { _ = req.Reply(req.Params) }
	for _, size := range []int{1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("%dMiB", size>>20), func(b *testing.B) {
			c := benchPair(b, pipes["os.Pipe"], answer)
			params := []byte(`"` + string(bytes.Repeat([]byte("<"), size)) + `"`)
			b.ReportAllocs()
			b.SetBytes(int64(2 * size))
			for b.Loop() {
				if _, err := c.Call(context.Background(), "echo", params); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
