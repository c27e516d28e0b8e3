package tests

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// bridgeRun is a running sidecar as a player sees it.
type bridgeRun struct {
	in    io.WriteCloser
	out   io.Reader
	ended chan int // exit code
}

// stage is where a story is played: in memory or against the built binary.
type stage interface {
	start(dir string, env []string) bridgeRun
	dial(address string) error    // nil if somebody listens
	client() *http.Client         // a caller with connections of its own
	settle(wanted func() bool)    // returns when everything has come out that will
	edited()                      // the configuration was written
	pass(d time.Duration)         // time passes
	hostDies()                    // the host's process is gone
	portNames() map[string]string // <taken1>, <forbidden1>
}

// player plays one story.
type player struct {
	t     *testing.T
	story *story
	stage stage
	names *names
	dir   string

	run    bridgeRun
	lines  sync.WaitGroup
	seq    int
	hidden map[string]bool // ids of requests whose answers are not shown

	mu       sync.Mutex
	state    bool   // host_state is answered
	llm      string // its llm part
	mains    int
	url      string
	memory   string
	got      []output
	sessions map[string]string
	clients  map[string]*http.Client
	cancels  map[string]context.CancelFunc
}

func newPlayer(t *testing.T, st *story, on stage, dir string) *player {
	p := &player{t: t, story: st, stage: on, names: newNames(dir), dir: dir, hidden: map[string]bool{}, state: true, mains: 1, llm: allowed,
		memory: "null", sessions: map[string]string{}, clients: map[string]*http.Client{}, cancels: map[string]context.CancelFunc{}}
	for name, value := range on.portNames() {
		p.names.set(name, value)
	}
	config := st.file("config")
	if config == "" {
		config = `{"token": "` + fixedToken + `"}`
	}
	p.names.token(fixedToken)
	if strings.TrimSpace(config) != "none" {
		p.write("a2mcp.json", p.names.fill(config))
	}
	return p
}

func (p *player) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// play carries the steps out and returns what came out of each.
func (p *player) play() [][]output {
	p.begin()
	var all [][]output
	for _, s := range p.story.steps {
		p.input(s)
		want := len(s.want)
		p.stage.settle(func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.got) >= want
		})
		all = append(all, p.collect())
	}
	p.end()
	return all
}

// collect takes what has come out, in the order of streams.
func (p *player) collect() []output {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.got
	p.got = nil
	sort.SliceStable(got, func(i, j int) bool { return got[i].stream < got[j].stream })
	for i := range got {
		got[i].text = p.names.hide(got[i].text)
	}
	return got
}

func (p *player) begin() {
	p.run = p.stage.start(p.dir, strings.Fields(p.names.fill(p.story.file("env"))))
	p.lines.Go(func() { p.read(p.run.out) })
}

func (p *player) end() {
	_ = p.run.in.Close()
	code := <-p.run.ended
	p.lines.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cancel := range p.cancels {
		cancel()
	}
	for _, c := range p.clients {
		c.CloseIdleConnections()
	}
	p.put("exit", fmt.Sprintf("exit %d", code))
}

func (p *player) put(stream, text string) { p.got = append(p.got, output{stream: stream, text: text}) }

// read takes the sidecar's lines: it answers host_state, keeps what the stories
// need, and shows the rest. Every byte has to be protocol (R01).
func (p *player) read(out io.Reader) {
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			if line != "" {
				p.t.Errorf("a torn line on standard output: %q", line)
			}
			return
		}
		p.line(strings.TrimSuffix(line, "\n"))
	}
}

func (p *player) line(line string) {
	var m struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      *string         `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.JSONRPC != "2.0" {
		p.t.Errorf("standard output carries %q, which is no protocol", line)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case m.Method == proto.SidecarHostState:
		if p.state {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"mains":%d,"llm":%s}}`, *m.ID, p.mains, p.llm))
		}
		return
	case m.Method == proto.SidecarRemember:
		p.memory = string(proto.Member(m.Params, "memory"))
	case m.Method == proto.SidecarNotify:
		if found := urlPattern.FindString(string(m.Params)); found != "" {
			p.url = found
		}
	case m.Method == "" && m.ID != nil && p.hidden[*m.ID]:
		p.put("hidden", string(m.Result))
		return
	}
	p.put("host", "host "+line)
}

var urlPattern = regexp.MustCompile(`http://[\w.\[\]:]+:\d+/`)

// send writes a line to the sidecar, which always reads.
func (p *player) send(line string) { go func() { _, _ = io.WriteString(p.run.in, line+"\n") }() }

func (p *player) sendNow(line string) {
	_, _ = io.WriteString(p.run.in, line+"\n") // a bridge that has ended reads nothing
}

// ask sends a request whose answer is not shown and returns that.
func (p *player) ask(method, params string) string {
	p.seq++
	id := fmt.Sprintf("h-hidden-%d", p.seq)
	p.mu.Lock()
	p.hidden[id] = true
	p.mu.Unlock()
	p.sendNow(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, id, method, params))
	answer := ""
	p.stage.settle(func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		at := slices.IndexFunc(p.got, func(o output) bool { return o.stream == "hidden" })
		if at >= 0 {
			answer = p.got[at].text
			p.got = slices.Delete(p.got, at, at+1)
		}
		return answer != ""
	})
	return answer
}

func (p *player) hello() {
	p.mu.Lock()
	memory := p.memory
	p.mu.Unlock()
	p.ask(proto.HostHello, fmt.Sprintf(`{"protocol":1,"host":{"name":"test","version":"1","mode":"test","pid":%d},"agentDir":%q,"home":%q,"cwd":%q,`+
		`"features":["cancel","tool_state","progress","exclusive","cards","llm","tools_changed","remember"],"memory":%s}`, os.Getpid(), p.dir, p.dir, p.dir, memory))
}

// input carries out one step.
func (p *player) input(s step) {
	args := p.names.fill(s.args)
	switch s.verb {
	case "host":
		p.sendNow(args)
	case "hostraw":
		text, err := strconv.Unquote(args)
		if err != nil {
			p.t.Fatalf("line %d: %v", s.line, err)
		}
		p.sendNow(text)
	case "hello":
		p.hello()
	case "up":
		p.up()
	case "command":
		p.sendNow(fmt.Sprintf(`{"jsonrpc":"2.0","id":"h-command","method":"command","params":{"name":"a2mcp","args":%q,"sessionId":"main"}}`, args))
	case "client":
		p.connect(args)
	case "http":
		p.request(s, args)
	case "post":
		name, body, _ := strings.Cut(args, " ")
		p.request(step{body: []string{body}}, name+" POST /")
	case "drop":
		p.mu.Lock()
		p.cancels[args]()
		p.mu.Unlock()
	case "dial":
		found := "open"
		if u, err := url.Parse(p.url); err != nil || p.stage.dial(u.Host) != nil {
			found = "refused"
		}
		p.mu.Lock()
		p.put("dial", "dial "+args+" "+found)
		p.mu.Unlock()
	default:
		p.world(s, args)
	}
}

// world changes what is around the bridge.
func (p *player) world(s step, args string) {
	switch s.verb {
	case "mains":
		p.mu.Lock()
		p.mains, _ = strconv.Atoi(args)
		p.mu.Unlock()
	case "llm":
		p.mu.Lock()
		p.llm = args
		p.mu.Unlock()
	case "hoststate":
		p.mu.Lock()
		p.state = args == "on"
		p.mu.Unlock()
	case "hostdies":
		p.stage.hostDies()
	case "edit":
		p.write("a2mcp.json", p.names.fill(strings.Join(s.body, "\n")))
		p.stage.edited()
	case "remove":
		if err := os.Remove(filepath.Join(p.dir, args)); err != nil {
			p.t.Fatal(err)
		}
		p.stage.edited()
	case "show":
		p.show(args)
	case "sleep":
		d, err := time.ParseDuration(args)
		if err != nil {
			p.t.Fatal(err)
		}
		p.stage.pass(d)
	case "eof":
		_ = p.run.in.Close()
	case "again":
		_ = p.run.in.Close()
		<-p.run.ended
		p.lines.Wait()
		p.collect() // the last words of the old one
		p.begin()
	default:
		p.t.Fatalf("line %d: there is no input %q", s.line, s.verb)
	}
}

func (p *player) show(name string) {
	text := "file " + name + " is not there"
	if data, err := os.ReadFile(filepath.Join(p.dir, name)); err == nil {
		info, _ := os.Stat(filepath.Join(p.dir, name))
		if name == "a2mcp.json" {
			token, _ := proto.Text(proto.Member(data, "token"))
			p.names.token(token)
		}
		text = fmt.Sprintf("file %s %o\n  %s", name, info.Mode().Perm(), strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", "\n  "))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put("file", text)
}

// up brings the bridge to where it serves.
func (p *player) up() {
	p.hello()
	p.ask(proto.HostSessionStart, `{"sessionId":"main","isMain":true,"hasUI":true,"cwd":"/","mains":1}`)
	p.stage.settle(func() bool { return true })
	p.collect()
	token, _ := proto.Text(proto.Member([]byte(p.ask(proto.HostCommand, `{"name":"a2mcp","args":"token","sessionId":"main"}`)), "text"))
	p.names.token(token)
}

// connect makes a caller with a session.
func (p *player) connect(name string) {
	req := p.build("POST", "/", nil, `{"jsonrpc":"2.0","id":0,"method":"initialize"}`)
	resp, err := p.client(name).Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	p.mu.Lock()
	p.sessions[name] = resp.Header.Get(proto.SessionHeader)
	p.mu.Unlock()
	p.stage.settle(func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.ContainsFunc(p.got, func(o output) bool { return strings.Contains(o.text, "remember") })
	})
	p.collect()
}

func (p *player) client(name string) *http.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients[name] == nil {
		p.clients[name] = p.stage.client()
	}
	return p.clients[name]
}

func (p *player) build(method, path string, header http.Header, body string) *http.Request {
	u, err := url.Parse(p.url)
	if err != nil || u.Host == "" {
		p.t.Fatalf("no address to send to: %q, %v", p.url, err)
	}
	req, err := http.NewRequest(method, "http://"+u.Host+"/", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	raw, query, _ := strings.Cut(path, "?")
	req.URL.Opaque, req.URL.RawQuery = "//"+u.Host+raw, query // as it is written, dots and all
	if header == nil {
		header = http.Header{}
	}
	if _, named := header["Authorization"]; !named {
		header.Set("Authorization", "Bearer "+p.names.lookup("$TOKEN"))
	}
	for key, values := range header {
		if values[0] == "-" {
			delete(header, key)
		}
	}
	req.Header = header
	return req
}

// request sends a request beside the story; the answer comes out when it comes.
func (p *player) request(s step, args string) {
	fields := strings.SplitN(args, " ", 3)
	name, caller := fields[0], strings.Split(fields[0], ".")[0]
	header := http.Header{}
	p.mu.Lock()
	if sid := p.sessions[caller]; sid != "" {
		header.Set(proto.SessionHeader, sid)
	}
	p.mu.Unlock()
	body := s.body
	for len(body) > 0 {
		key, value, ok := strings.Cut(body[0], ": ")
		if !ok || !headerPattern.MatchString(key) {
			break
		}
		if header.Get(key) != "" && key != "Authorization" {
			header.Del(key)
		}
		header.Add(key, p.names.fill(value))
		body = body[1:]
	}
	req := p.build(fields[1], fields[2], header, p.names.fill(strings.Join(body, "\n")))
	ctx, cancel := context.WithCancel(context.Background())
	p.mu.Lock()
	p.cancels[name] = cancel
	p.mu.Unlock()
	client := p.client(name)
	go func() {
		resp, err := client.Do(req.WithContext(ctx))
		text := "http " + name + " failed"
		if err == nil {
			text = "http " + name + " " + describe(resp)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.put("http "+name, text)
	}()
}

var headerPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)

// describe writes a response: status, the headers that matter, body.
func describe(resp *http.Response) string {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	text := strconv.Itoa(resp.StatusCode)
	for _, key := range slices.Sorted(maps.Keys(resp.Header)) {
		values := resp.Header[key]
		switch key {
		case "Date", "Content-Length", "Connection":
		case "Content-Type":
			if values[0] != "application/json" || len(body) == 0 {
				text += " " + key + "=" + values[0]
			}
		default:
			text += " " + key + "=" + strings.Join(values, ",")
		}
	}
	if err != nil {
		text += " broken off"
	}
	if len(body) > 0 {
		text += "\n  " + strings.ReplaceAll(string(body), "\n", "\n  ")
	}
	return text
}

// allowed is the llm part of host_state while nothing is denied.
const allowed = `{"wanted":false,"armed":false,"degraded":false,"denied":0}`
