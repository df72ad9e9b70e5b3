export { pyautoguiAdapter } from './pyautogui.ts'
