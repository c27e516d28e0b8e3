package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"strings"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// Exit codes of call and tools, the same as the Python client's (C1); interrupted has
// another.
const (
	exitToolError = 1 // the tool ran and said isError
	exitUsage     = 2 // the command line is wrong, or no bridge could be chosen
	exitToken     = 3 // the token was refused
	exitTimeout   = 4 // no answer, in time or at all; the call may have run
	exitDead      = 5 // no connection could be made to that address
	exitProtocol  = 6 // something answers, but not as a bridge does
	exitUnwritten = 7 // the answer came and could not be written
)

// failure is an error of the client with its exit code.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

func failed(code int, format string, args ...any) error {
	return &failure{code: code, text: fmt.Sprintf(format, args...)}
}

// callID is the id of every request: there is one at a time.
const callID = 1

// client speaks MCP with one bridge. It shakes hands by itself, and once more
// when the bridge has forgotten the session.
type client struct {
	url     string
	token   string
	session string
	called  bool // a tools/call has been sent
	http    http.Client
}

// newClient speaks with the bridge at an address. It follows no redirect: a bridge
// sends none, and the token is for the bridge alone. Go's own transport asks no proxy
// for a loopback address either, but knows one in small letters only.
func newClient(url, token string) *client {
	c := &client{url: url, token: token}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = func(req *http.Request) (*neturl.URL, error) {
		if strings.EqualFold(req.URL.Hostname(), "localhost") {
			return nil, nil
		}
		return http.ProxyFromEnvironment(req)
	}
	c.http.Transport = transport
	return c
}

// request sends one request and returns its raw result.
func (c *client) request(ctx context.Context, method string, params []byte) ([]byte, error) {
	for again := true; ; again = false {
		if c.session == "" {
			if err := c.initialize(ctx); err != nil {
				return nil, err
			}
		}
		c.called = c.called || method == proto.MethodToolsCall
		status, _, body, err := c.post(ctx, message(callID, method, params))
		switch {
		case err != nil:
			return nil, err
		case status == http.StatusNotFound && again:
			c.session = "" // ended, evicted or expired: shake hands again
			continue
		}
		return result(status, body)
	}
}

func (c *client) initialize(ctx context.Context) error {
	params := []byte(`{"protocolVersion":"` + proto.ProtocolVersion + `","capabilities":{},"clientInfo":{"name":"a2mcp-call","version":"1"}}`)
	status, header, body, err := c.post(ctx, message(0, proto.MethodInitialize, params))
	if err != nil {
		return err
	}
	if _, err := result(status, body); err != nil {
		return err
	}
	if c.session = header.Get(proto.SessionHeader); c.session == "" {
		return failed(exitProtocol, "%s gave no session: is it an a2mcp bridge?", c.url)
	}
	return nil
}

// cancel asks the bridge to abort a request that nobody waits for any more, and
// reports whether that took the message (M11).
func (c *client) cancel() bool {
	ctx, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	note := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"%s","params":{"requestId":%d}}`, proto.MethodCancelled, callID)
	status, _, _, err := c.exchange(ctx, note)
	return err == nil && status == http.StatusAccepted
}

// end gives the session back.
func (c *client) end() {
	if c.session == "" {
		return
	}
	ctx, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.url, http.NoBody)
	if err != nil {
		return
	}
	c.headers(req)
	if resp, err := c.http.Do(req); err == nil {
		resp.Body.Close()
	}
}

func message(id int, method string, params []byte) []byte {
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"%s"`, id, method)
	if params != nil {
		body = append(append(body, `,"params":`...), params...)
	}
	return append(body, '}')
}

func (c *client) headers(req *http.Request) {
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set(proto.SessionHeader, c.session)
	}
}

// post sends a message; its error is one for the caller.
func (c *client) post(ctx context.Context, body []byte) (status int, header http.Header, answer []byte, err error) {
	var came progress
	status, header, answer, err = c.exchange(came.trace(ctx), body)
	if err != nil {
		err = c.lost(ctx, &came, err)
	}
	return status, header, answer, err
}

func (c *client) exchange(ctx context.Context, body []byte) (status int, header http.Header, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	c.headers(req)
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, nil, errors.Unwrap(err) // without method and address
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, answer, err
}

// result takes a response apart.
func result(status int, body []byte) ([]byte, error) {
	if status == http.StatusUnauthorized {
		return nil, failed(exitToken, "the bridge refused the token; `/a2mcp token` in the host shows the right one")
	}
	var reply struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(body, &reply); {
	case err != nil:
		return nil, failed(exitProtocol, "HTTP %d without JSON: is it an a2mcp bridge?", status)
	case reply.Error != nil:
		return nil, failed(exitProtocol, "HTTP %d: %s (%d)", status, printable(reply.Error.Message), reply.Error.Code)
	case !proto.IsObject(reply.Result):
		return nil, failed(exitProtocol, "HTTP %d without a result: is it an a2mcp bridge?", status)
	}
	return reply.Result, nil
}
