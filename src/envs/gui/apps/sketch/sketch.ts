import { gui } from '../../../../kits/environment.ts'

const { act, defineApp, html, page, steps } = gui

interface Point {
  readonly x: number
  readonly y: number
}
interface Sketch {
  /** Squares of the board that are painted, as `column,row`, sorted. */
  painted: string[]
  pins: string[]
  /** Where the handle of the dial stands, in steps of ten. */
  dial: number
}

/** The board is drawn at a fixed place of the screen, so that it can only be used by looking. */
const origin: Point = { x: 40, y: 120 }
const side = 48
const [columns, rows] = [12, 9]
const dialTop: Point = { x: 700, y: 160 }
const { computer, look, done } = steps
const middle = ({ x, y }: Point): Point => ({ x: origin.x + x * side + side / 2, y: origin.y + y * side + side / 2 })
const key = ({ x, y }: Point): string => `${x},${y}`

/** A board that is one canvas: no element to point at, only pixels. */
export const sketch = defineApp<Sketch>({
  name: 'sketch',
  apiVersion: 1,
  pointsAtPixels: true,
  start: (d) => ({ painted: [], pins: [], dial: d.between(0, 3) * 10 }),
  page: (path, _query, state) => (path === '/' ? board(state) : null),
  act: (op, fields, state) => {
    const square = fields['square'] ?? ''
    if (/^\d+,\d+$/.test(square)) {
      const list = op === 'paint' ? state.painted : state.pins
      if (!list.includes(square)) list.push(square)
      list.sort()
      return '/'
    }
    if (op === 'stroke') {
      const squares = (fields['squares'] ?? '').split(' ').filter((one) => /^\d+,\d+$/.test(one))
      state.painted = [...new Set([...state.painted, ...squares])].toSorted()
      return '/'
    }
    if (op === 'dial') {
      const value = Number(fields['value'])
      if (!Number.isInteger(value) || value < 0 || value > 100) return '!The dial goes from 0 to 100.'
      state.dial = value
      return '/'
    }
    if (op === 'clear') {
      state.painted = []
      state.pins = []
      return '/'
    }
    return '!Unknown.'
  },
  goals: {
    'paint-square': (d) => {
      const square = { x: d.between(0, columns - 1), y: d.between(0, rows - 1) }
      const other = { x: (square.x + 1) % columns, y: square.y }
      return {
        instruction: `On the board, paint the square in column ${square.x + 1} and row ${square.y + 1} (both counted from 1, from the upper left) by a left click.`,
        change: (s) => {
          s.painted = [key(square)]
        },
        oracle: [look(), computer({ action: 'click', ...middle(square) }), done()],
        near: [look(), computer({ action: 'click', ...middle(other) }), done()],
      }
    },
    'draw-line': (d) => {
      const y = d.between(0, rows - 1)
      const from = d.between(0, 4)
      const to = from + d.between(3, 6)
      const squares = (end: number) => Array.from({ length: end - from + 1 }, (_, at) => ({ x: from + at, y }))
      const stroke = (end: number) => [look(), computer({ action: 'drag', path: squares(end).map(middle) }), done()]
      return {
        instruction: `Paint row ${y + 1} of the board from column ${from + 1} to column ${to + 1} in one stroke, by dragging over it. Paint nothing else.`,
        change: (s) => {
          s.painted = squares(to).map(key).toSorted()
        },
        oracle: stroke(to),
        near: stroke(to - 1),
      }
    },
    'set-pin': (d) => {
      const square = { x: d.between(0, columns - 1), y: d.between(0, rows - 1) }
      const pin = (action: string) => [look(), computer({ action, ...middle(square) }), done()]
      return {
        instruction: `Set a pin on the square in column ${square.x + 1} and row ${square.y + 1} of the board. A right click sets a pin, a left click would paint.`,
        change: (s) => {
          s.pins = [key(square)]
        },
        oracle: pin('right_click'),
        near: pin('click'),
      }
    },
    'turn-dial': (d, state) => {
      const value = (4 + d.between(0, 6)) * 10
      const turn = (to: number) => [
        look(),
        computer({ action: 'drag', path: [handle(state.dial), handle(to)] }),
        done(),
      ]
      return {
        instruction: `Drag the handle at the right of the board, which slides between 0 (at the top) and 100 (at the bottom), to ${value}.`,
        change: (s) => {
          s.dial = value
        },
        oracle: turn(value),
        near: turn(value - 20),
      }
    },
  },
})

function handle(value: number): Point {
  return { x: dialTop.x, y: dialTop.y + value * 3 }
}

function board({ painted, pins, dial }: Sketch) {
  return page({
    title: 'Sketch',
    style: 'canvas{position:absolute;left:0;top:60px}form{position:absolute;left:800px;top:70px}',
    body: html`<canvas width="790" height="640" id="board"></canvas>${act('clear', 'Clear', {}, { plain: true })}`,
    script: `
const state=${JSON.stringify({ painted, pins, dial })},side=${side},columns=${columns},rows=${rows},ox=${origin.x},oy=${origin.y - 60};
const c=document.getElementById('board'),g=c.getContext('2d');let stroke=null,turning=null;
const draw=()=>{g.clearRect(0,0,790,640);g.strokeStyle='#8893a6';g.fillStyle='#2f62b3';g.font='15px "Liberation Sans"';
 const marked=new Set([...state.painted,...(stroke||[])]);
 for(let x=0;x<columns;x++)for(let y=0;y<rows;y++){if(marked.has(x+','+y))g.fillRect(ox+x*side,oy+y*side,side,side);g.strokeRect(ox+x*side+.5,oy+y*side+.5,side,side)}
 g.fillStyle='#1c2330';for(let x=0;x<columns;x++)g.fillText(x+1,ox+x*side+16,oy-8);for(let y=0;y<rows;y++)g.fillText(y+1,ox-24,oy+y*side+28);
 g.fillStyle='#c0392b';for(const p of state.pins){const [x,y]=p.split(',').map(Number);g.beginPath();g.arc(ox+x*side+side/2,oy+y*side+side/2,9,0,7);g.fill()}
 const v=turning??state.dial;g.strokeStyle='#445';g.beginPath();g.moveTo(${dialTop.x},${dialTop.y - 60});g.lineTo(${dialTop.x},${dialTop.y - 60 + 300});g.stroke();
 g.fillStyle='#1c2330';g.fillText('0',${dialTop.x + 24},${dialTop.y - 56});g.fillText('100',${dialTop.x + 24},${dialTop.y - 60 + 305});
 g.fillStyle='#2f62b3';g.fillRect(${dialTop.x - 14},${dialTop.y - 60}+v*3-8,28,16);g.fillStyle='#1c2330';g.fillText(v,${dialTop.x - 50},${dialTop.y - 60}+v*3+5)};
const at=e=>{const x=Math.floor((e.offsetX-ox)/side),y=Math.floor((e.offsetY-oy)/side);return x>=0&&y>=0&&x<columns&&y<rows?x+','+y:null};
const level=e=>Math.max(0,Math.min(100,Math.round((e.offsetY-${dialTop.y - 60})/30)*10));
c.onpointerdown=e=>{if(e.button!==0)return;if(Math.abs(e.offsetX-${dialTop.x})<24&&Math.abs(e.offsetY-(${dialTop.y - 60}+state.dial*3))<14)turning=state.dial;else if(at(e))stroke=[at(e)]};
c.onpointermove=e=>{if(turning!==null){turning=level(e);draw()}else if(stroke){const s=at(e);if(s&&!stroke.includes(s)){stroke.push(s);draw()}}};
c.onpointerup=e=>{if(turning!==null){const v=turning;turning=null;return post('dial',{value:v})}
 if(stroke&&stroke.length>1){const s=stroke.join(' ');stroke=null;return post('stroke',{squares:s})}
 const s=stroke&&stroke[0];stroke=null;if(s)post('paint',{square:s})};
c.oncontextmenu=e=>{e.preventDefault();const s=at(e);if(s)post('pin',{square:s})};
draw();`,
  })
}
